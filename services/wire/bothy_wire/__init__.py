"""What all ends of bothy agree on: ids, frames, close codes, limits, signatures, the end-to-end channel.

Nothing in this package performs I/O, reads a clock or draws a random number outside a cryptographic primitive.
"""
