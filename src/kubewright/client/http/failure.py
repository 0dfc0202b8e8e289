"""Turns errors of the operating system and OpenSSL into actionable messages. They contain addresses, nothing secret."""

from __future__ import annotations

import os
import socket
import ssl

from kubewright.client.errors import ConnectionFailed, TLSError, TransportError

# The verification codes of OpenSSL (X509_V_ERR_*) that have a known remedy.
_NOT_YET_VALID = 9
_EXPIRED = 10
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21, 27})
_WRONG_NAME = frozenset({62, 64})


def connect_failure(peer: str, error: OSError | UnicodeError) -> TransportError:
    """Why there is no connection to `peer` ("host:port"): the error to raise for the one from the loop."""
    if isinstance(error, ssl.SSLError):
        return tls_failure(peer, error)
    if isinstance(error, UnicodeError):
        return ConnectionFailed(f"cannot connect to {peer}: that is not a host name")
    if isinstance(error, socket.gaierror):
        return ConnectionFailed(f"cannot connect to {peer}: the host name cannot be resolved ({error.strerror})")
    reason = os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
    return ConnectionFailed(f"cannot connect to {peer}: {reason}")


def tls_failure(peer: str, error: ssl.SSLError) -> TransportError:
    """Why TLS with `peer` failed: during the handshake, or later when the server refused our certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TLSError(f"the certificate of {peer} is not accepted: {_verification(error)}")
    reason = error.reason or ""
    if "ALERT" in reason:
        # OpenSSL names the alert like TLSV13_ALERT_CERTIFICATE_REQUIRED; the words after ALERT are the server's.
        alert = reason.partition("ALERT_")[2].replace("_", " ").lower()
        text = f"{peer} ended the TLS connection: {alert}"
        if "certificate" in alert or alert in ("unknown ca", "access denied", "handshake failure", "decrypt error"):
            text += "; it does not accept our client certificate, or requires one and got none"
        return TLSError(text)
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"):
        return TLSError(f"{peer} does not speak TLS; if that is intended, its address starts with http://")
    if isinstance(error, ssl.SSLEOFError):
        return ConnectionFailed(f"cannot connect to {peer}: the connection was closed during the TLS handshake")
    return TLSError(f"TLS with {peer} failed: {reason.replace('_', ' ').lower() or error.strerror or error}")


def _verification(error: ssl.SSLCertVerificationError) -> str:
    code = error.verify_code
    # OpenSSL's sentence for a wrong name ends with a full stop, the others do not.
    text = error.verify_message.rstrip(".")
    if code == _EXPIRED:
        return f"{text}; renew it, or check this machine's clock"
    if code == _NOT_YET_VALID:
        return f"{text}; check this machine's clock"
    if code in _UNKNOWN_AUTHORITY:
        return f"{text}; its issuer is not in the certificate authority data of the configuration"
    if code in _WRONG_NAME:
        return f"{text}; connect by a name that the certificate holds, or set tls-server-name"
    return text
