"""`python -I -S health.py PATH`: exit with 0 if the service answers 200 on PATH.

Docker runs it every few seconds in every container, so it imports only a socket.
"""

import socket
import sys

PORT = 9100
TIMEOUT_S = 3

with socket.create_connection(("127.0.0.1", PORT), TIMEOUT_S) as connection:
    connection.sendall(f"GET {sys.argv[1]} HTTP/1.0\r\n\r\n".encode())
    sys.exit(b" 200 " not in connection.recv(64))
