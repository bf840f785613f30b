#!/usr/bin/env python3
"""A template's own code, as far as abxd and abx-commands see it: it speaks the protocol of common/worker.h with nothing behind it.

Started by hand it becomes abxd ($FAKE_ABXD) with the same arguments and leaves a worker behind; with ABX_WORKER_FDS it is a worker that was started again. In the
directory $FAKE_DIR lie table.json (the table), and files by which a test tells it what to do:
  again.json  the table of every worker but the first     launch.json  members of the launch document to replace
  broken      a worker that is started again ends with this text on standard error
  deaf        take no calls
  stubborn    do not mind SIGTERM
  drop        lose the next call before it is taken: by closing it, or (the text is "die") by dying
Each worker appends its pid to `workers` there, and what happened to calls goes to `events`.
"""
import array
import json
import os
import signal
import socket
import struct
import sys
import threading
import time

DIR = os.environ['FAKE_DIR']


def path(name):
    return os.path.join(DIR, name)


def note(name, text):
    fd = os.open(path(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(fd, (text + '\n').encode())
    os.close(fd)


def read(name):
    try:
        with open(path(name)) as file:
            return file.read()
    except FileNotFoundError:
        return None


def compact(text):
    return json.dumps(json.loads(text), separators=(',', ':'), sort_keys=True)


# ---- a call

def receive(conn, length):
    data = b''
    while len(data) < length:
        piece = conn.recv(length - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def receive_frame(conn):
    length, kind = struct.unpack('<Ic3x', receive(conn, 8))
    return kind, receive(conn, length)


def send(conn, kind, payload=b''):
    if isinstance(payload, dict):
        payload = json.dumps(payload).encode()
    conn.sendall(struct.pack('<Ic3x', len(payload), kind) + payload)


def wait_closed(conn, what):
    while conn.recv(4096):
        pass
    note('events', what + ' closed')


def run_command(conn, question, body):
    args = json.loads(body or b'{}')
    name = question['name']
    if name == 'echo':
        send(conn, b'R', body or b'null')
    elif name == 'ask':
        send(conn, b'R', json.dumps({'question': question, 'body': body.decode('latin-1'), 'pid': os.getpid()}).encode())
    elif name == 'raw':
        send(conn, b'R', args['text'].encode())
    elif name == 'big':
        send(conn, b'R', b'"' + b'x' * args['bytes'] + b'"')
    elif name == 'fail':
        send(conn, b'F', args)
    elif name == 'die':
        os.kill(os.getpid(), signal.SIGKILL)
    elif name.startswith('hang'):
        note('events', 'hang began')
        wait_closed(conn, 'hang')
    elif name == 'garbage':
        conn.sendall(bytes.fromhex(args['hex']))
        wait_closed(conn, 'garbage')
    elif name == 'environ':
        with open('/proc/self/environ', 'rb') as file:
            send(conn, b'R', json.dumps(sorted(file.read().decode('latin-1').split('\0'))).encode())
    elif name == 'spawn':
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.execve('/bin/sleep', ['sleep', '1000'], dict(os.environ))
        # The pipe is closed by the new program.
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        send(conn, b'R', str(pid).encode())
    elif name == 'secret':
        send(conn, b'R', b'"told"')


def run_route(conn, question, body):
    query = dict(question['query'])
    if query.get('mode') == 'stream':
        send(conn, b'H', {'status': 200, 'headers': [['X-Mine', 'yes']], 'stream': True, 'length': None})
        for i in range(int(query.get('count', '1000000'))):
            send(conn, b'D', b'event: tick\ndata: {"n": %d}\n\n' % i)
            note('events', 'tick')
            if query.get('count') is None:
                wait_closed(conn, 'stream')
                return
        if query.get('end') == 'silent':
            conn.recv(1)
        elif query.get('end') != 'no':
            send(conn, b'Z')
        return
    if query.get('mode') == 'fail':
        send(conn, b'F', {'status': 418, 'error': 'no coffee', 'type': 'TeapotError', 'code': 'teapot'})
        return
    if query.get('mode') == 'short':
        send(conn, b'H', {'status': 200, 'headers': [], 'stream': False, 'length': 100})
        send(conn, b'D', b'{}')
        send(conn, b'Z')
        return
    if query.get('mode') == 'header':
        send(conn, b'H', {'status': 200, 'headers': [['X-A', 'a\r\nX-B: b']], 'stream': False, 'length': 2})
        return
    data = json.dumps({'question': question, 'body': body.decode('latin-1')}).encode()
    head = {'status': 201, 'headers': [['X-Mine', 'yes'], ['X-Sendfile', '/etc/passwd'], ['Content-Length', '1'], ['Status', '500']],
            'stream': False, 'length': len(data)}
    if 'type' in query:
        head['headers'].append(['content-type', query['type']])
    send(conn, b'H', head)
    for i in range(0, len(data), 100):
        send(conn, b'D', data[i:i + 100])
    send(conn, b'Z')


def serve_call(conn):
    try:
        kind, question = receive_frame(conn)
        body_kind, body = receive_frame(conn)
        assert (kind, body_kind) == (b'Q', b'B')
        question = json.loads(question)
        (run_command if question['kind'] == 'command' else run_route)(conn, question, body)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        note('events', 'call broken')
    finally:
        conn.close()


# ---- the worker

def serve(calls):
    while True:
        while read('deaf') is not None:
            time.sleep(0.02)
        data, ancillary, _, _ = calls.recvmsg(1, socket.CMSG_SPACE(4))
        if not data:
            return
        fds = array.array('i')
        fds.frombytes(ancillary[0][2][:4])
        conn = socket.socket(fileno=fds[0])
        drop = read('drop')
        if drop:
            os.unlink(path('drop'))
            if drop.strip() == 'die':
                os.kill(os.getpid(), signal.SIGKILL)
            conn.close()
            continue
        threading.Thread(target=serve_call, args=(conn,), daemon=True).start()


def work(calls, control, table):
    if read('stubborn') is not None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note('workers', str(os.getpid()))
    lines = control.makefile()
    try:
        control.sendall(table.encode() + b'\n')
        accept = json.loads(lines.readline() or '{}')
    except OSError:
        # abxd has gone without reading what it was told.
        os._exit(1)
    note('accepts', json.dumps(accept))
    if not accept.get('accept'):
        os._exit(1)
    os.environ['INVOCATION_ID'] = accept['invocation']
    threading.Thread(target=serve, args=(calls,), daemon=True).start()
    for line in lines:
        note('accepts', line.strip())
    os._exit(0)


def hand_over(table):
    calls = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    pid = os.fork()
    if pid == 0:
        calls[0].close()
        control[0].close()
        for name in [name for name in os.environ if name.startswith('ABX_')]:
            del os.environ[name]
        work(calls[1], control[1], read('first.json') or table)
    launch = {'table': table, 'argv': [sys.executable, os.path.abspath(__file__)], 'cwd': DIR, 'pid': pid,
              'template': path('template.yaml') if read('template.yaml') is not None else None,
              'calls': [calls[0].fileno(), calls[1].fileno()], 'control': control[0].fileno()}
    launch.update(json.loads(read('launch.json') or '{}'))
    fd = os.memfd_create('launch', 0)
    os.write(fd, json.dumps(launch).encode())
    for end in (calls[0], calls[1], control[0]):
        end.set_inheritable(True)
    os.execv(os.environ['FAKE_ABXD'], ['abxd'] + sys.argv[1:] + ['--code', str(fd)])


def main():
    table = compact(read('table.json'))
    if 'ABX_WORKER_FDS' not in os.environ:
        hand_over(table)
    calls, control = os.environ.pop('ABX_WORKER_FDS').split(',')
    broken = read('broken')
    if broken is not None:
        sys.stdout.write('this goes to standard error as well\n')
        sys.stdout.flush()
        sys.stderr.write(broken)
        os._exit(1)
    again = read('again.json')
    work(socket.socket(fileno=int(calls)), socket.socket(fileno=int(control)), compact(again) if again else table)


main()
