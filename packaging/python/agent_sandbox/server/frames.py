"""The frames on the socket of a call: a length (u32, little endian), a type, three zero bytes, and the payload."""

import socket
import struct

_HEADER = struct.Struct("<IB3x")
_PIECE = 65536

PAYLOAD_MAX = 2 ** 32 - 1

QUESTION = ord("Q")
BODY = ord("B")
RESULT = ord("R")
FAILURE = ord("F")
HEAD = ord("H")
DATA = ord("D")
END = ord("Z")


class Gone(Exception):
    """The other end has left: nobody waits for this call any more."""


class Channel:
    """A call's socket. One thread at a time uses it."""

    __slots__ = ("socket", "_pending")

    def __init__(self, sock):
        self.socket = sock
        self._pending = b""

    def receive(self):
        """The next frame: its type and payload."""
        while len(self._pending) < _HEADER.size:
            self._pending += self._piece()
        length, kind = _HEADER.unpack_from(self._pending)
        end = _HEADER.size + length
        if len(self._pending) >= end:
            payload, self._pending = self._pending[_HEADER.size:end], self._pending[end:]
            return kind, payload
        payload = bytearray(length)
        have = len(self._pending) - _HEADER.size
        payload[:have] = self._pending[_HEADER.size:]
        self._pending = b""
        self._fill(memoryview(payload)[have:])
        return kind, payload

    def _piece(self):
        try:
            piece = self.socket.recv(_PIECE)
        except OSError as error:
            raise Gone() from error
        if not piece:
            raise Gone()
        return piece

    def _fill(self, rest):
        try:
            while rest:
                got = self.socket.recv_into(rest)
                if not got:
                    raise Gone()
                rest = rest[got:]
        except OSError as error:
            raise Gone() from error

    def send(self, kind, payload=b""):
        """Send a frame. A large payload is not copied together with its header."""
        if len(payload) < _PIECE:
            try:
                self.socket.sendall(_HEADER.pack(len(payload), kind) + payload, socket.MSG_NOSIGNAL)
            except OSError as error:
                raise Gone() from error
            return
        parts = [memoryview(_HEADER.pack(len(payload), kind)), memoryview(payload)]
        try:
            while parts:
                sent = self.socket.sendmsg(parts, (), socket.MSG_NOSIGNAL)
                while parts and sent >= len(parts[0]):
                    sent -= len(parts.pop(0))
                if parts:
                    parts[0] = parts[0][sent:]
        except OSError as error:
            raise Gone() from error
