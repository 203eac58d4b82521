from hypothesis import given
from hypothesis import strategies as st

from bothy_wire.codes import CODE_BYTES, USER_CODE_BYTES, code_hash, format_code, format_user_code, normal_code


def test_a_code_is_read_as_people_type_it():
    assert normal_code(" 7qk3m-0oIlL z\n") == normal_code("7QK3M00111Z") == "7QK3M00111Z"


@given(st.text(alphabet="0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ- "))
def test_a_normal_form_stays_as_it_is(typed):
    assert normal_code(normal_code(typed)) == normal_code(typed)


@given(st.binary(min_size=CODE_BYTES, max_size=CODE_BYTES))
def test_a_code_holds_all_its_bits_in_five_groups(random):
    code = format_code(random)
    assert [len(group) for group in code.split("-")] == [5, 5, 5, 5, 4]
    value = 0
    for digit in normal_code(code):
        value = value * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(digit)
    assert value.to_bytes(CODE_BYTES, "big") == random


@given(st.binary(min_size=USER_CODE_BYTES, max_size=USER_CODE_BYTES))
def test_a_user_code_holds_all_its_bits_in_two_groups(random):
    code = format_user_code(random)
    assert [len(group) for group in code.split("-")] == [4, 4]
    value = 0
    for digit in normal_code(code):
        value = value * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(digit)
    assert value.to_bytes(USER_CODE_BYTES, "big") == random


def test_every_spelling_has_one_hash():
    assert code_hash("7qk3m 0oil1") == code_hash("7QK3M-00111") != code_hash("7QK3M-00112")
