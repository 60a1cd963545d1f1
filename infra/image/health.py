"""`python -I -S health.py PATH`: does this container's service say 200 there?

Docker asks every few seconds in every container, so this is a socket and nothing to import.
"""

import socket
import sys

PORT = 9100
TIMEOUT_S = 3

with socket.create_connection(("127.0.0.1", PORT), TIMEOUT_S) as asked:
    asked.sendall(f"GET {sys.argv[1]} HTTP/1.0\r\n\r\n".encode())
    sys.exit(b" 200 " not in asked.recv(64))
