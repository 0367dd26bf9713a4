"""Connections: TLS, and processes that share a client."""

import os
import shutil
import ssl
import subprocess
import tempfile
import unittest
from pathlib import Path

from skillbox import Client, Error

from .scripted import ScriptedServer, answer, envelope


class ConnectionTest(unittest.TestCase):
    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_forked_process_does_not_share_a_connection(self):
        with ScriptedServer(*[answer(envelope())] * 3) as server, Client(server.url, "skb_key") as client:
            client.run_code("1")
            child = os.fork()
            if child == 0:
                os._exit(0 if client.run_code("1").output == 42 else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            client.run_code("1")
            self.assertEqual(server.connections, 2)

    @unittest.skipUnless(shutil.which("openssl"), "openssl is missing")
    def test_certificates_are_verified(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = Path(folder, "key.pem"), Path(folder, "certificate.pem")
            options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
            names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
            subprocess.run(["openssl", "req", "-x509", *options, *names], check=True, capture_output=True)
            of_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            of_server.load_cert_chain(certificate, key)
            with ScriptedServer(*[answer(envelope())] * 2, tls=of_server) as server:
                trusting = ssl.create_default_context(cafile=certificate)
                with Client(server.url, "skb_key", ssl_context=trusting) as client:
                    self.assertEqual([client.run_code("1").output for _ in range(2)], [42, 42])
                self.assertEqual(server.connections, 1)
                with Client(server.url, "skb_key") as client, self.assertRaises(Error) as found:
                    client.run_code("1")
                self.assertEqual((found.exception.code, found.exception.retryable), ("no_connection", False))
                self.assertIn("certificate", found.exception.message.lower())
                self.assertEqual((server.connections, len(server.requests)), (2, 2))
