"""Certificate signing requests: their user, approval, signing, and that a signed certificate works."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from tests.conformance.asking import Answer, Ask, AskAs, Grant

from kubewright.api.authentication.v1 import SelfSubjectReview
from kubewright.api.certificates.v1 import CertificateSigningRequest
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.client import Client, Config
from kubewright.client.wait import Field
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.user import User

PLACE = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MERGE = "application/merge-patch+json"
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
KEY = ec.generate_private_key(ec.SECP256R1())


def signing_request(
    name: str = "jane", groups: Sequence[str] = ("dev",), alternatives: Sequence[x509.GeneralName] = ()
) -> str:
    """A request for a certificate as it is in `spec.request`."""
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    # Only the usages that the spec requests, and no authority, may result from this.
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return encoded(builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))


def encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


REQUEST = signing_request()


def spec(**fields: JSONValue) -> JSONObject:
    """For a signer that no controller implements, unless another one is given."""
    return {"request": REQUEST, "signerName": "example.com/none", "usages": ["client auth"], **fields}


def conditions(*types: str, **fields: str) -> JSONObject:
    return {"status": {"conditions": [{"type": type_, "status": "True", **fields} for type_ in types]}}


@pytest.fixture
async def name(admin: Client, namespace: str) -> AsyncIterator[str]:
    """What the names of the test's own requests begin with. They go with it."""
    yield namespace
    for found in await admin.list(CertificateSigningRequest):
        if found.metadata.name.startswith(namespace):
            await admin.delete(found)


@pytest.fixture
def request_(name: str) -> str:
    """Where the test's request is."""
    return f"{PLACE}/{name}"


async def created(ask: Ask, name: str, **fields: JSONValue) -> Answer:
    answer = await ask("POST", PLACE, {"metadata": {"name": name}, "spec": spec(**fields)})
    assert answer.code == 201, answer
    return answer


# The spec


async def test_the_requester_is_the_user_that_the_server_authenticated(ask_as: AskAs, grant: Grant, name: str) -> None:
    rule: JSONObject = {"verbs": ["*"], "apiGroups": ["certificates.k8s.io"], "resources": ["*"]}
    await grant("jane", rule)
    claimed = spec(username="root", uid="0", groups=["system:masters"], extra={"a": ["b"]})
    ask = ask_as("jane", "dev")
    stamped = await ask("POST", PLACE, {"metadata": {"name": name}, "spec": claimed, **conditions("Approved")})
    changed = await ask("PATCH", f"{PLACE}/{name}", {"spec": {"username": "root", "signerName": "a.b/c"}}, MERGE)
    by_status = await ask("PATCH", f"{PLACE}/{name}/status", {"spec": {"username": "root"}}, MERGE)
    by_approval = await ask("PATCH", f"{PLACE}/{name}/approval", {"spec": {"username": "root"}}, MERGE)

    expected = {**spec(), "username": "jane", "groups": ["dev", "system:authenticated"]}
    assert at(stamped.body, "spec") == expected
    assert at(stamped.body, "status") == {}
    for answer in (changed, by_status, by_approval):
        assert (answer.code, at(answer.body, "spec")) == (200, expected)


SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
USAGES = (
    '"any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", '
    '"decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", '
    '"ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", '
    '"server auth", "signing", "timestamping"'
)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        (
            {"request": "aGVsbG8="},
            'spec.request: Invalid value: "aGVsbG8=": PEM block type must be CERTIFICATE REQUEST',
        ),
        ({"request": None}, "spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST"),
        ({"usages": []}, "spec.usages: Required value"),
        (
            {"usages": ["x", "client auth", "client auth"]},
            f'[spec.usages[0]: Unsupported value: "x": supported values: {USAGES}, '
            'spec.usages[2]: Duplicate value: "client auth"]',
        ),
        ({"signerName": ""}, "spec.signerName: Required value"),
        (
            {"signerName": "a.b/c/d"},
            'spec.signerName: Invalid value: "a.b/c/d": must be a fully qualified domain and path of the form '
            "'example.com/signer-name'",
        ),
        (
            {"signerName": "a/b"},
            'spec.signerName: Invalid value: "a": should be a domain with at least two segments separated by dots',
        ),
        (
            {"signerName": "a.b/C"},
            f'spec.signerName: Invalid value: "C": validating label "C": {SUBDOMAIN}',
        ),
        (
            {"signerName": "kubernetes.io/legacy-unknown"},
            'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": '
            "the legacy signerName is not allowed via this API version",
        ),
        (
            {"expirationSeconds": 599},
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)",
        ),
    ],
)
async def test_a_request_must_be_one(ask: Ask, name: str, fields: JSONObject, complaint: str) -> None:
    refused = await ask("POST", PLACE, {"metadata": {"name": name}, "spec": spec(**fields)})

    message = f'CertificateSigningRequest.certificates.k8s.io "{name}" is invalid: {complaint}'
    assert refused.refusal == (422, "Invalid", message)


@pytest.mark.parametrize("before", [b"hello\n", b"-----BEGIN CERTIFICATE REQUEST-----\n", b"-----BEGIN X-----\n!\n"])
async def test_what_is_before_the_request_does_not_matter(ask: Ask, name: str, before: bytes) -> None:
    request = encoded(before + base64.b64decode(REQUEST))

    assert (await ask("POST", PLACE, {"metadata": {"name": name}, "spec": spec(request=request)})).code == 201


async def test_a_request_must_be_signed_with_the_key_it_names(ask: Ask, name: str) -> None:
    der = bytearray(x509.load_pem_x509_csr(base64.b64decode(REQUEST)).public_bytes(serialization.Encoding.DER))
    der[der.index(b"jane")] ^= 1
    forged = encoded(x509.load_der_x509_csr(bytes(der)).public_bytes(serialization.Encoding.PEM))
    refused = await ask("POST", PLACE, {"metadata": {"name": name}, "spec": spec(request=forged)})

    assert refused.code == 422
    assert text(refused.body, "message").endswith("x509: ECDSA verification failure")


async def test_a_certificate_of_an_administrator_is_refused(ask: Ask, name: str) -> None:
    masters = signing_request(groups=["dev", "system:masters"])
    body: JSONObject = {"metadata": {"name": name}, "spec": spec(request=masters, signerName=CLIENT)}
    refused = await ask("POST", PLACE, body)
    elsewhere = await ask("POST", f"{PLACE}?dryRun=All", {**body, "spec": spec(request=masters)})

    message = (
        f'certificatesigningrequests.certificates.k8s.io "{name}" is forbidden: '
        f"use of {CLIENT} signer with system:masters group is not allowed"
    )
    assert refused.refusal == (403, "Forbidden", message)
    assert elsewhere.code == 201


# What becomes of it


def invalid(name: str, *complaints: str) -> tuple[int, str, str]:
    refusal = complaints[0] if len(complaints) == 1 else f"[{', '.join(complaints)}]"
    return 422, "Invalid", f'CertificateSigningRequest.certificates.k8s.io "{name}" is invalid: {refusal}'


EXCLUSIVE = 'status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'


@pytest.mark.parametrize(
    ("condition", "complaint"),
    [
        ({"type": "Approved"}, "status.conditions[0].status: Required value"),
        (
            {"type": "Denied", "status": "False"},
            'status.conditions[0].status: Unsupported value: "False": supported values: "True"',
        ),
        ({"type": "", "status": "True"}, "status.conditions[0].type: Required value"),
        (
            {"type": "Other", "status": "Maybe"},
            'status.conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
        ),
    ],
)
async def test_conditions_are_checked(
    ask: Ask, name: str, request_: str, condition: JSONObject, complaint: str
) -> None:
    await created(ask, name)
    refused = await ask("PATCH", f"{request_}/approval", {"status": {"conditions": [condition]}}, MERGE)

    assert refused.refusal == invalid(name, complaint)


async def test_a_decision_is_made_by_the_endpoint_approval_and_stands(ask: Ask, name: str, request_: str) -> None:
    await created(ask, name)
    approval = f"{request_}/approval"
    plainly = await ask("PATCH", request_, conditions("Approved"), MERGE)
    by_status = await ask("PATCH", f"{request_}/status", conditions("Approved"), MERGE)
    both = await ask("PATCH", approval, conditions("Approved", "Denied"), MERGE)
    approved = await ask(
        "PATCH", approval, {**conditions("Approved", reason="Why"), "metadata": {"labels": {"a": "b"}}}, MERGE
    )
    read = await ask("GET", approval)
    changed_mind = await ask("PATCH", approval, conditions("Denied"), MERGE)
    taken_back = await ask("PATCH", approval, {"status": {"conditions": []}}, MERGE)
    certified = await ask("PATCH", approval, {"status": {"certificate": REQUEST}}, MERGE)
    rewritten = await ask("PATCH", f"{request_}/status", conditions("Approved", reason="Because"), MERGE)

    assert (plainly.code, at(plainly.body, "status")) == (200, {})
    added = 'status.conditions: Forbidden: updates may not add a condition of type "Approved"'
    removed = 'status.conditions: Forbidden: updates may not remove a condition of type "Approved"'
    assert by_status.refusal == invalid(name, added)
    assert both.refusal == invalid(name, EXCLUSIVE)
    (condition,) = map(mapping, items(approved.body, "status", "conditions"))
    assert text(condition, "lastUpdateTime") == text(condition, "lastTransitionTime") != ""
    assert {field: condition[field] for field in ("type", "status", "reason")} == {
        "type": "Approved",
        "status": "True",
        "reason": "Why",
    }
    assert at(approved.body, "metadata", "labels") == {"a": "b"}
    assert read.body == approved.body
    assert changed_mind.refusal == invalid(name, removed)
    assert taken_back.refusal == invalid(name, removed)
    # What an endpoint is not about, it leaves as it is.
    for ignored in (certified, rewritten):
        assert (ignored.code, at(ignored.body, "status")) == (200, at(approved.body, "status"))


async def test_a_certificate_is_set_once_by_the_endpoint_status(
    ask: Ask, name: str, request_: str, control_plane: ControlPlane
) -> None:
    await created(ask, name)

    async def set_certificate(pem: str) -> Answer:
        return await ask("PATCH", f"{request_}/status", {"status": {"certificate": encoded(pem.encode())}}, MERGE)

    nothing = await set_certificate("hello")
    other = await set_certificate(base64.b64decode(REQUEST).decode())
    given = await set_certificate(control_plane.ca_certificate)
    again = await set_certificate(control_plane.ca_certificate * 2)
    failed = await ask("PATCH", f"{request_}/status", conditions("Failed"), MERGE)
    recovered = await ask("PATCH", f"{request_}/status", {"status": {"conditions": []}}, MERGE)

    wrong = 'status.certificate: Invalid value: "<certificate data>":'
    assert nothing.refusal == invalid(name, f"{wrong} must contain at least one CERTIFICATE PEM block")
    assert other.refusal == invalid(
        name, f'{wrong} only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"'
    )
    assert at(given.body, "status") == {"certificate": encoded(control_plane.ca_certificate.encode())}
    assert again.refusal == invalid(
        name, "status.certificate: Forbidden: updates may not modify existing certificate content"
    )
    assert failed.code == 200
    assert recovered.refusal == invalid(
        name, 'status.conditions: Forbidden: updates may not remove a condition of type "Failed"'
    )


async def test_fields_that_an_endpoint_ignores_are_not_owned(ask: Ask, name: str, request_: str) -> None:
    body: JSONObject = {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": spec()}
    labelled = await ask("POST", PLACE, body)
    approved = await ask("PATCH", f"{request_}/approval", conditions("Approved"), MERGE)
    failed = await ask("PATCH", f"{request_}/status", conditions("Approved", "Failed"), MERGE)

    (creator,) = items(labelled.body, "metadata", "managedFields")
    assert list(mapping(creator, "fieldsV1")) == ["f:metadata"]
    (_, approver) = items(approved.body, "metadata", "managedFields")
    assert text(approver, "subresource") == "approval"
    assert list(mapping(approver, "fieldsV1", "f:status", "f:conditions")) == [".", 'k:{"type":"Approved"}']
    assert len(items(failed.body, "metadata", "managedFields")) == 2


# Who may


@pytest.mark.parametrize("signer", ["example.com/none", "example.com/*"])
@pytest.mark.parametrize(
    ("verb", "endpoint", "type_"), [("approve", "approval", "Denied"), ("sign", "status", "Failed")]
)
async def test_approving_and_signing_need_the_rights_of_the_signer(
    ask: Ask, ask_as: AskAs, grant: Grant, name: str, request_: str, signer: str, verb: str, endpoint: str, type_: str
) -> None:
    await created(ask, name)
    group = "certificates.k8s.io"
    everything: JSONObject = {
        "verbs": ["*"],
        "apiGroups": [group],
        "resources": [f"certificatesigningrequests/{endpoint}"],
    }
    other: JSONObject = {"verbs": [verb], "apiGroups": [group], "resources": ["signers"], "resourceNames": ["a.b/c"]}
    await grant("jane", everything, other)
    await grant("joe", everything, {**other, "resourceNames": [signer]})
    labels: JSONObject = {"metadata": {"labels": {"a": "b"}}}
    refused = await ask_as("jane")("PATCH", f"{request_}/{endpoint}", conditions(type_), MERGE)
    unchanged = await ask_as("jane")("PATCH", f"{request_}/{endpoint}", labels, MERGE)
    allowed = await ask_as("joe")("PATCH", f"{request_}/{endpoint}", conditions(type_), MERGE)

    message = (
        f'certificatesigningrequests.certificates.k8s.io "{name}" is forbidden: '
        f'user not permitted to {verb} requests with signerName "example.com/none"'
    )
    assert refused.refusal == (403, "Forbidden", message)
    # Who signs nothing may write to the status; the endpoint `approval` is for approvers whatever they write.
    assert unchanged.code == (200 if endpoint == "status" else 403)
    assert allowed.code == 200


# Signed


async def signed(client: Client, name: str) -> x509.Certificate:
    found = await client.wait_for(
        CertificateSigningRequest,
        name,
        Field("status.certificate").satisfies(bool, "is there"),
        timeout=60,
    )
    assert found is not None
    assert found.status.certificate is not None
    return x509.load_pem_x509_certificate(base64.b64decode(found.status.certificate))


async def test_an_approved_client_certificate_is_a_user(
    control_plane: ControlPlane, ask: Ask, admin: Client, name: str
) -> None:
    """From `kubectl certificate approve` to a request that is made with the certificate."""
    usages: JSONValue = ["client auth", "digital signature"]
    await created(ask, name, request=signing_request("jane", ["dev", "ops"]), signerName=CLIENT, usages=usages)
    approved = await control_plane.kubectl("certificate", "approve", name)
    certificate = await signed(admin, name)
    pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
    key = KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    user = User("jane", ("dev", "ops"), control_plane.url, control_plane.ca_certificate, pem, key)
    async with Client(Config.from_kubeconfig_text(user.kubeconfig)) as client:
        review = await client.create(SelfSubjectReview())

    assert approved.stdout == f"certificatesigningrequest.certificates.k8s.io/{name} approved\n"
    info = review.status.user_info
    assert info is not None
    assert (info.username, info.groups) == ("jane", ["dev", "ops", "system:authenticated"])
    assert certificate.public_key() == KEY.public_key()
    assert {extension.oid._name for extension in certificate.extensions} == {
        "basicConstraints",
        "keyUsage",
        "extendedKeyUsage",
        "authorityKeyIdentifier",
    }
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_encipherment, usage.key_cert_sign) == (True, False, False)


@pytest.mark.parametrize(
    ("seconds", "lifetime"),
    [
        (3600, timedelta(hours=1)),
        # A long life begins and ends five minutes earlier.
        (86400, timedelta(days=1) - timedelta(minutes=5)),
    ],
)
async def test_a_certificate_lives_as_long_as_was_requested(
    ask: Ask, admin: Client, name: str, request_: str, seconds: int, lifetime: timedelta
) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    await created(ask, name, signerName=CLIENT, expirationSeconds=seconds)
    await ask("PATCH", f"{request_}/approval", conditions("Approved"), MERGE)
    certificate = await signed(admin, name)

    began = certificate.not_valid_before_utc + timedelta(minutes=5)
    assert before <= began <= datetime.now(UTC)
    assert certificate.not_valid_after_utc - began == lifetime


async def test_a_kubelet_serving_certificate_has_the_names_of_its_request(
    ask: Ask, admin: Client, name: str, request_: str
) -> None:
    names = [x509.DNSName("node-1"), x509.IPAddress(ip_address("10.1.2.3"))]
    await created(
        ask,
        name,
        request=signing_request("system:node:node-1", ["system:nodes"], names),
        signerName=KUBELET_SERVING,
        usages=["server auth", "digital signature", "key encipherment"],
    )
    await ask("PATCH", f"{request_}/approval", conditions("Approved"), MERGE)
    certificate = await signed(admin, name)

    assert list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value) == names
    purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.SERVER_AUTH]


NODE_USAGES: JSONValue = ["digital signature", "client auth"]
KUBELET = ("system:node:node-1", ("system:nodes",))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        (
            {"signerName": CLIENT, "usages": ["client auth", "server auth"]},
            "invalid usage for client certificate: server auth",
        ),
        (
            {"signerName": CLIENT, "usages": ["digital signature"]},
            "missing required usage for client certificate: client auth",
        ),
        (
            {"signerName": KUBELET_CLIENT, "usages": NODE_USAGES},
            "subject organization is not system:nodes",
        ),
        (
            {"signerName": KUBELET_CLIENT, "usages": ["client auth"], "request": signing_request(*KUBELET)},
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (
            {"signerName": KUBELET_CLIENT, "usages": NODE_USAGES, "request": signing_request("x", ["system:nodes"])},
            "subject common name does not begin with system:node:",
        ),
        (
            {
                "signerName": KUBELET_CLIENT,
                "usages": NODE_USAGES,
                "request": signing_request(*KUBELET, [x509.RFC822Name("a@b.c"), x509.DNSName("a")]),
            },
            "DNS subjectAltNames are not allowed",
        ),
        (
            {"signerName": KUBELET_SERVING, "usages": NODE_USAGES, "request": signing_request(*KUBELET)},
            "DNS or IP subjectAltName is required",
        ),
        (
            {
                "signerName": KUBELET_SERVING,
                "usages": NODE_USAGES,
                "request": signing_request(*KUBELET, [x509.DNSName("a"), x509.UniformResourceIdentifier("a:b")]),
            },
            "URI subjectAltNames are not allowed",
        ),
        (
            {
                "signerName": KUBELET_SERVING,
                "usages": NODE_USAGES,
                "request": signing_request(*KUBELET, [x509.DNSName("a")]),
            },
            "usages did not match [digital signature key encipherment server auth]",
        ),
    ],
)
async def test_a_request_that_breaks_the_rules_of_its_signer_fails(
    ask: Ask, admin: Client, name: str, request_: str, fields: JSONObject, complaint: str
) -> None:
    await created(ask, name, **fields)
    await ask("PATCH", f"{request_}/approval", conditions("Approved"), MERGE)
    found = await admin.wait_for(
        CertificateSigningRequest, name, Field("status.conditions[1].type").equals("Failed"), timeout=60
    )

    assert found is not None
    failure = found.status.conditions[1]
    assert (failure.status, failure.reason, failure.message) == ("True", "SignerValidationFailure", complaint)
    assert not found.status.certificate


async def test_denied_requests_and_those_of_other_signers_are_not_signed(
    control_plane: ControlPlane, ask: Ask, admin: Client, name: str
) -> None:
    await created(ask, f"{name}-denied", signerName=CLIENT)
    await created(ask, f"{name}-other")
    await created(ask, f"{name}-last", signerName=CLIENT)
    denied = await control_plane.kubectl("certificate", "deny", f"{name}-denied")
    for suffix in ("other", "last"):
        await ask("PATCH", f"{PLACE}/{name}-{suffix}/approval", conditions("Approved"), MERGE)
    await signed(admin, f"{name}-last")

    assert denied.stdout == f"certificatesigningrequest.certificates.k8s.io/{name}-denied denied\n"
    for suffix in ("denied", "other"):
        assert not (await admin.get(CertificateSigningRequest, f"{name}-{suffix}")).status.certificate


# Kubelets


@pytest.mark.parametrize(
    ("user", "right", "message"),
    [
        ("bootstrap", "nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."),
        (
            "system:node:node-1",
            "selfnodeclient",
            "Auto approving self kubelet client certificate after SubjectAccessReview.",
        ),
    ],
)
async def test_a_kubelet_that_may_have_a_client_certificate_gets_it(
    ask_as: AskAs, grant: Grant, admin: Client, name: str, user: str, right: str, message: str
) -> None:
    resources: JSONValue = ["certificatesigningrequests", f"certificatesigningrequests/{right}"]
    await grant(user, {"verbs": ["create"], "apiGroups": ["certificates.k8s.io"], "resources": resources})
    await created(ask_as(user), name, request=signing_request(*KUBELET), signerName=KUBELET_CLIENT, usages=NODE_USAGES)
    certificate = await signed(admin, name)
    (condition,) = (await admin.get(CertificateSigningRequest, name)).status.conditions

    assert (condition.type, condition.reason, condition.message) == ("Approved", "AutoApproved", message)
    assert certificate.subject.rfc4514_string() == "CN=system:node:node-1,O=system:nodes"


async def test_a_kubelet_certificate_without_permission_waits_for_an_approver(
    ask_as: AskAs, grant: Grant, admin: Client, name: str
) -> None:
    group = "certificates.k8s.io"
    create: JSONObject = {"verbs": ["create"], "apiGroups": [group], "resources": ["certificatesigningrequests"]}
    of_its_own: JSONObject = {**create, "resources": ["certificatesigningrequests/selfnodeclient"]}
    everybody: JSONObject = {**create, "resources": ["certificatesigningrequests/nodeclient"]}
    # It is not the node that it asks for.
    await grant("jane", create, of_its_own)
    await grant("joe", create, everybody)
    for user in ("jane", "joe"):
        await created(
            ask_as(user),
            f"{name}-{user}",
            request=signing_request(*KUBELET),
            signerName=KUBELET_CLIENT,
            usages=NODE_USAGES,
        )
    await signed(admin, f"{name}-joe")

    assert (await admin.get(CertificateSigningRequest, f"{name}-jane")).status.conditions == []
