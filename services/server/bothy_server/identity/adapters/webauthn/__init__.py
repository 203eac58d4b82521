"""The rules of WebAuthn, by a library."""
