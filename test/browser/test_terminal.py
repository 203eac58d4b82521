"""A terminal in the browser, with a real shell behind it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shlex
import shutil
import time
from pathlib import Path

from playwright.async_api import expect

from bothy_kit.console_page import PATIENCE_S, open_terminal
from bothy_kit.world_parts import HOST

DELIVERED = Path(__file__).with_name("delivered.js")
FILE_BYTES = int(os.environ.get("BOTHY_BROWSER_BYTES", "5000000"))
FLOOD_BYTES = 3_000_000
MOST_HEAP_GROWTH = 64 * 1024 * 1024
ATTACK = "harmless\x1b[201~\r echo PWNED-$((6*7))\r\x9b201~\r echo PWNED-$((6*7))\r"


async def test_the_link_signs_in_and_shows_the_host_online(signed_in):
    host = signed_in.page.get_by_role("listitem", name=HOST)
    await expect(host.get_by_text("online", exact=True)).to_be_visible()


async def test_a_terminal_opens_shows_the_key_of_a_new_host_and_echoes(signed_in):
    terminal = await open_terminal(signed_in.page)
    await expect(signed_in.page.get_by_text(f"First time on {HOST} from this browser. Its key ")).to_be_visible()
    await terminal.type("echo $((6 * 7)) answers\n")
    await terminal.shows("^42 answers$")


async def test_the_shell_follows_the_size_of_the_window(signed_in):
    terminal = await open_terminal(signed_in.page)

    async def size(when):
        await terminal.type(f"clear; stty size; echo {when[0]}''{when[1:]}\n")
        shown = await terminal.shows(rf"^(\d+) (\d+)\n{when}$")
        return int(shown[1]), int(shown[2])

    before = await size("before")
    assert before[0] == len(await terminal.rows())
    await signed_in.page.set_viewport_size({"width": 900, "height": 500})
    await terminal.type(
        f'until [ "$(stty size)" != "{before[0]} {before[1]}" ]; do sleep 0.05; done; echo resi\'\'zed\n'
    )
    await terminal.shows("^resized$")
    after = await size("after")
    assert after[0] < before[0]
    assert after[1] < before[1]
    assert after[0] == len(await terminal.rows())


async def test_a_program_of_the_whole_screen_is_drawn_and_leaves_the_screen_as_it_was(signed_in, tmp_path):
    page = tmp_path / "page.txt"
    page.write_text("".join(f"row {number}\n" for number in range(1, 1000)))
    words = next(words for words in (["vim", "--clean", "-R"], ["vi", "-R"], ["less"]) if shutil.which(words[0]))
    terminal = await open_terminal(signed_in.page)
    await terminal.type("clear; echo be''fore\n")
    await terminal.shows("^before$")
    await terminal.type(f"{shlex.join(words)} {page}\n")
    last = len(await terminal.rows()) - 1
    await terminal.shows(rf"\Arow 1\n(.*\n)+row {last}\n")
    await terminal.type("G")
    await terminal.shows(rf"\Arow {1000 - last}\n(.*\n)+row 999\n")
    await terminal.type("q\n" if words == ["less"] else ":q!\n")
    await terminal.shows(r"\Abefore\n")


async def test_a_flood_leaves_the_page_alive_and_ctrl_c_ends_it(signed_in):
    page = signed_in.page
    await page.add_init_script(path=DELIVERED)
    await page.reload()
    terminal = await open_terminal(page)
    await terminal.read_aloud(on=False)
    await terminal.type(r"PS1=$(printf '\033]0;idle\007$ ')" + "\n")
    tab = page.get_by_role("tab", name=HOST)
    await expect(tab).to_contain_text("idle")
    before = await heap(signed_in)

    await terminal.type(r"printf '\033]0;busy\007'; yes" + "\n")
    await expect(tab).to_contain_text("busy")
    await page.evaluate(WATCH_FRAMES)
    begun, first = time.monotonic(), await page.evaluate("() => delivered.count()")
    while (count := await page.evaluate("() => delivered.count()") - first) < FLOOD_BYTES:
        assert time.monotonic() - begun < PATIENCE_S
    rate = count / (time.monotonic() - begun)
    longest = await page.evaluate("() => longestFrame()")
    await page.evaluate(WATCH_PROMPT, "idle")
    await terminal.press("Control+C")
    async with asyncio.timeout(PATIENCE_S):
        to_prompt = await page.evaluate("() => prompted")
    grown = await heap(signed_in) - before
    print(
        f"\nflood: {rate / 1e6:.1f} MB/s, longest gap between two frames {longest:.0f} ms,"
        f" {to_prompt:.0f} ms from Ctrl-C to the prompt, heap grown by {grown / 1e6:.1f} MB"
    )
    assert grown < MOST_HEAP_GROWTH
    await terminal.read_aloud()
    await terminal.type("echo $((6 * 7)) answers\n")
    await terminal.shows("^42 answers$")


async def test_a_file_arrives_byte_exact_and_is_drawn(signed_in, tmp_path):
    line = b"%08d the quick brown fox jumps over the lazy dog\n"
    data = b"".join(line % number for number in range(FILE_BYTES // len(line % 0)))
    sent = tmp_path / "sent.txt"
    sent.write_bytes(data)
    page = signed_in.page
    await page.add_init_script(path=DELIVERED)
    await page.reload()
    terminal = await open_terminal(page)
    await terminal.type("stty -opost; clear\n")
    await page.evaluate("() => void delivered.keep()")
    begun = time.monotonic()
    await terminal.type(f"echo be''gin; cat {sent}; echo en''d; stty opost\n")
    await terminal.shows(r"end\b")
    took = time.monotonic() - begun
    assert await page.evaluate("() => delivered.between('begin\\n', 'end\\n')") == {
        "bytes": len(data),
        "hash": hashlib.sha256(data).hexdigest(),
    }
    print(f"\nfile: {len(data):,} bytes in {took:.1f} s, {len(data) / 1e6 / took:.1f} MB/s, hash equal")


async def test_a_paste_by_keyboard_cannot_leave_its_bracket(signed_in):
    page = signed_in.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    terminal = await bracketing_shell(page)
    await page.evaluate("(text) => navigator.clipboard.writeText(text)", ATTACK)
    await terminal.press("Control+Shift+V")
    await harmless(terminal)


async def test_a_paste_by_event_cannot_leave_its_bracket(signed_in):
    terminal = await bracketing_shell(signed_in.page)
    await terminal.paste_event(ATTACK)
    await harmless(terminal)


async def test_dropped_text_cannot_leave_its_bracket(signed_in):
    terminal = await bracketing_shell(signed_in.page)
    await terminal.drop(ATTACK)
    await harmless(terminal)


async def bracketing_shell(page):
    """A shell that takes a paste for text: nothing of it runs before the person's own Enter."""
    terminal = await open_terminal(page)
    await terminal.type("exec bash --norc --noprofile\n")
    await terminal.type("PS1='> '; bind 'set enable-bracketed-paste on'; clear; echo rea''dy\n")
    await terminal.shows("^ready$")
    return terminal


async def harmless(terminal):
    """It arrived as text, and the person throws it away."""
    await terminal.shows(r"^> harmless\[201~")
    await terminal.press("Control+C")
    await terminal.type("echo af''ter\n")
    await terminal.shows("^after$")
    assert "PWNED-42" not in "\n".join(await terminal.rows())


async def test_what_a_program_copies_and_links_does_nothing_by_itself(signed_in):
    page = signed_in.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.evaluate("() => navigator.clipboard.writeText('mine')")
    terminal = await open_terminal(page)
    await terminal.type(r"printf '\033]52;c;ZXZpbA==\007\033]8;;javascript:alert(1)\033\\link\033]8;;\033\\\n'" + "\n")
    await terminal.shows("^link$")
    assert await page.evaluate("() => navigator.clipboard.readText()") == "mine"
    assert len(page.context.pages) == 1


WATCH_FRAMES = """() => {
    let last = performance.now(), longest = 0, watching = true;
    const frame = (at) => {
        longest = Math.max(longest, at - last);
        last = at;
        if (watching) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    window.longestFrame = () => { watching = false; return longest; };
}"""

WATCH_PROMPT = """(title) => {
    const tab = document.querySelector('[role=tab][aria-selected=true]');
    window.prompted = new Promise((resolve) => {
        let pressed = null;
        addEventListener("keydown", (event) => { if (event.key.toLowerCase() === "c") pressed = performance.now(); }, { capture: true });
        const look = () => { if (pressed !== null && tab.textContent.includes(title)) resolve(performance.now() - pressed); };
        new MutationObserver(look).observe(tab, { subtree: true, childList: true, characterData: true });
    });
}"""


async def heap(browser):
    """Bytes in use, after everything that nobody holds is gone."""
    await browser.devtools.send("Performance.enable")
    await browser.devtools.send("HeapProfiler.collectGarbage")
    metrics = await browser.devtools.send("Performance.getMetrics")
    return next(each["value"] for each in metrics["metrics"] if each["name"] == "JSHeapUsedSize")
