"""A proxy that takes CONNECT, for hosts that only it can find: all of them are this machine."""

import contextlib
import select
import socket
import socketserver
import threading

PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().decode()
        while self.rfile.readline().strip():
            pass
        self.server.asked.append(line.split()[1])
        port = int(line.split()[1].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as other:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            ends = {self.connection: other, other: self.connection}
            while True:
                ready, _, _ = select.select(list(ends), [], [], 60.0)
                for end in ready:
                    piece = end.recv(65536)
                    if not piece:
                        return
                    ends[end].sendall(piece)
                if not ready:
                    return


@contextlib.contextmanager
def connecting():
    """Its address, and a list of what it was asked to connect to."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.asked = True, []
    with server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://me:secret@127.0.0.1:{server.server_address[1]}", server.asked
        server.shutdown()
        thread.join()
