"""User data and network data of cloud-init, and where they do not appear."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode, b64encode

import pytest
import yaml
from operators.wukong.cloud_init import NETWORK_DATA, USER_DATA, network_data, user_data
from operators.wukong.context import Attachment
from operators.wukong.ssh_keys import SSHKeys, keys_in
from operators.wukong.tests.worlds import ALL, World, verdict, virtual_world
from operators.wukong.types import CloudInitUser, IPConfig, Network, Wukong, WukongSpec

from kubewright import Client, ObjectMeta
from kubewright.api import Dynamic
from kubewright.api.codec import encode
from kubewright.api.core.v1 import Secret
from kubewright.testing import count_requests, virtual

PASSWORD = "s3cret: #$6$ \"quoted\" 'twice'"
KEY = "ssh-ed25519 AAAA me@example.com"


def parsed(text: str) -> dict[str, object]:
    loaded = yaml.safe_load(text)
    assert isinstance(loaded, dict)
    return loaded


def test_a_user_with_a_password_in_clear() -> None:
    text = user_data(CloudInitUser(name="me", password=PASSWORD), [KEY])
    assert text.startswith("#cloud-config\n")
    assert parsed(text) == {
        "disable_root": False,
        "ssh_pwauth": True,
        "users": [
            {
                "name": "me",
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "shell": "/bin/bash",
                "groups": "sudo, adm, dialout, cdrom, floppy, audio, dip, video, plugdev, netdev",
                "lock_passwd": False,
                "plain_text_passwd": PASSWORD,
                "ssh_authorized_keys": [KEY],
            }
        ],
    }


def test_the_hash_of_a_password_takes_precedence() -> None:
    hashed = "$6$rounds=4096$salt$hash"
    (user,) = yaml.safe_load(user_data(CloudInitUser(name="me", password="clear", password_hash=hashed), []))["users"]
    assert user["passwd"] == hashed
    assert "plain_text_passwd" not in user


def test_keys_without_a_user_are_for_that_of_the_image() -> None:
    assert parsed(user_data(None, [KEY])) == {"disable_root": False, "ssh_authorized_keys": [KEY]}


def test_without_a_password_nobody_logs_in_by_one() -> None:
    assert parsed(user_data(CloudInitUser(name="me"), [KEY]))["ssh_pwauth"] is False


def test_every_interface_is_in_the_network_data_and_found_by_its_address() -> None:
    static = IPConfig(mode="static", address="10.0.0.5/24", gateway="10.0.0.1", dns_servers=["10.0.0.2"])
    networks = [Network(name="lan", ip_config=static), Network(name="wan", ip_config=IPConfig(mode="dhcp"))]
    wukong = Wukong(metadata=ObjectMeta(name="web", uid="u"), spec=WukongSpec(cpu=1, disks=[], networks=networks))
    attachments = [
        Attachment("default", "", "masquerade"),
        Attachment("lan", "a", "bridge"),
        Attachment("wan", "b", "bridge"),
    ]
    data = yaml.safe_load(network_data(wukong, attachments))
    assert data["version"] == 2
    ethernets = data["ethernets"]
    assert {name: {key: entry[key] for key in entry if key != "match"} for name, entry in ethernets.items()} == {
        "net0": {"dhcp4": True},
        "net1": {
            "dhcp4": False,
            "addresses": ["10.0.0.5/24"],
            "routes": [{"to": "0.0.0.0/0", "via": "10.0.0.1"}],
            "nameservers": {"addresses": ["10.0.0.2"]},
        },
        "net2": {"dhcp4": True},
    }
    addresses = [entry["match"]["macaddress"] for entry in ethernets.values()]
    assert len(set(addresses)) == 3
    assert all(address.startswith("02:") for address in addresses)


PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----"


def key(comment: str) -> str:
    return f"ssh-ed25519 AAAAC3Nz {comment}"


def encoded(**texts: str) -> dict[str, str]:
    return {name.replace("_", "-"): b64encode(text.encode()).decode() for name, text in texts.items()}


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        ({"id_rsa.pub": key("one"), "ssh-publickey": key("two")}, [key("two")]),
        ({"authorized_keys": f"# {key('mine')}\n {key('one')} \n\n{key('two')}\n"}, [key("one"), key("two")]),
        ({"ssh-publickey": "", "publickey": key("three"), "zzz": key("four")}, [key("three")]),
        ({"b": "", "c": key("five"), "d": key("six")}, [key("five")]),
        ({"id_ed25519": f"{PRIVATE}\nb3Bl\n", "id_ed25519.pub": key("seven")}, [key("seven")]),
        ({"a": f'from="10.0.0.0/8",no-pty {key("eight")}\nnot a key'}, [f'from="10.0.0.0/8",no-pty {key("eight")}']),
        ({"a": "sk-ssh-ed25519@openssh.com AAAAGnNr="}, ["sk-ssh-ed25519@openssh.com AAAAGnNr="]),
        ({"ssh-privatekey": PRIVATE}, []),
        ({"ssh-publickey": "s3cr3t", "token": "eyJhbGciOiJSUzI1NiJ9.e30.c2ln"}, []),
        ({"a": "  "}, []),
        ({}, []),
    ],
)
def test_the_keys_are_those_of_the_first_entry_that_has_some(data: dict[str, str], keys: list[str]) -> None:
    secret = Secret(metadata=ObjectMeta(name="keys"), data={name: encoded(x=text)["x"] for name, text in data.items()})
    assert keys_in(secret) == keys


async def key_secret(client: Client, text: str = KEY) -> Secret:
    return await client.create(Secret(metadata=ObjectMeta(name="keys"), data={"ssh-publickey": encoded(x=text)["x"]}))


async def secret_text(world: World, name: str = USER_DATA) -> str:
    secret = await world.client.get(Secret, "web-cloudinit")
    return b64decode(secret.data[name]).decode()


@virtual
async def test_the_machine_names_the_secret_and_has_the_disk_for_it() -> None:
    async with virtual_world() as world:
        lan = Network(name="lan", type="bridge", ip_config=IPConfig(mode="static", address="10.0.0.5/24"))
        await world.running(cloud_init_user=CloudInitUser(name="me", password=PASSWORD), networks=[lan])
        spec = (await world.machine()).spec.template.spec
        (volume,) = [each for each in spec.volumes if each.name == "cloudinitdisk"]
        assert volume.cloud_init_no_cloud is not None
        assert volume.cloud_init_no_cloud.secret_ref is not None
        assert volume.cloud_init_no_cloud.network_data_secret_ref is not None
        assert volume.cloud_init_no_cloud.secret_ref.name == "web-cloudinit"
        assert "cloudinitdisk" in [each.name for each in spec.domain.devices.disks]
        interfaces = {each.name: each.mac_address for each in spec.domain.devices.interfaces}
        ethernets = yaml.safe_load(await secret_text(world, NETWORK_DATA))["ethernets"]
        assert [each["match"]["macaddress"] for each in ethernets.values()] == [
            interfaces["default"],
            interfaces["lan"],
        ]


@virtual
async def test_without_anything_to_do_there_is_no_cloud_init() -> None:
    async with virtual_world() as world:
        await world.running()
        assert await world.names(Secret) == set()
        assert [each.name for each in (await world.machine()).spec.template.spec.volumes] == ["root"]


@virtual
async def test_changed_keys_reach_the_guest_and_unchanged_ones_are_not_read_again() -> None:
    async with virtual_world() as world:
        secret = await key_secret(world.client)
        await world.running(ssh_key_secret="keys")
        assert parsed(await secret_text(world))["ssh_authorized_keys"] == [KEY]
        with count_requests(world.own) as requests:
            await world.change({"cpu": 2})
            await world.settled()
        assert [each for each in requests.by_path if "secrets" in each] == []

        secret.data = encoded(authorized_keys=key("another"))
        await world.client.update(secret)
        await world.settled()
        assert parsed(await secret_text(world))["ssh_authorized_keys"] == [key("another")]


@virtual
async def test_a_secret_with_keys_that_is_missing_is_waited_for() -> None:
    async with virtual_world() as world:
        await world.create(ssh_key_secret="keys")
        await world.settled()
        waiting = await world.get()
        assert verdict(waiting, "Ready") == (
            "False",
            "SSHKeyMissing",
            "the Secret keys with the public keys does not exist",
        )
        secret = await key_secret(world.client)
        await world.reaches("Running", timeout=9)

        await world.client.delete(secret)
        await world.change({"cpu": 2})
        await world.settled()
        running = verdict(await world.get(), "Ready")
        assert running is not None
        assert running[:2] == ("True", "VMRunning")
        assert running[2].endswith("; the Secret keys with the public keys does not exist"), "or nobody knows why"
        await key_secret(world.client)
        await world.becomes(lambda wukong: "; " not in (verdict(wukong, "Ready") or "")[2], timeout=9)
        assert (await world.machine()).spec.template.spec.domain.cpu.cores == 2


@virtual
async def test_a_secret_without_keys_is_an_error_until_it_has_some() -> None:
    async with virtual_world(kinds=ALL) as world:
        secret = await key_secret(world.client, " ")
        await world.create(ssh_key_secret="keys")
        await world.settled()
        failed = await world.get()
        assert failed.status.phase == "Error"
        found = verdict(failed, "Ready")
        assert found is not None
        assert found[1:] == (
            "SSHKeyMissing",
            "the Secret keys has no public key: put them into its ssh-publickey",
        )
        with count_requests(world.own) as seen:
            await asyncio.sleep(120)
        assert seen.attempts == [], "it is read once, also without keys"
        secret.data = encoded(ssh_publickey=KEY)
        await world.client.update(secret)
        await world.reaches("Running", timeout=9)


@virtual
async def test_keys_that_nobody_asks_for_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operators.wukong.ssh_keys.MAX_READ", 2)
    async with virtual_world() as world:
        read: list[str] = []
        for name in ("a", "b", "c"):
            secret = Secret(metadata=ObjectMeta(name=name), data=encoded(authorized_keys=KEY))
            await world.client.create(secret)
        await world.settled()
        keys = SSHKeys(world.manager.client)
        for name in ("a", "b", "a", "c", "a", "b"):
            with count_requests(world.own) as requests:
                assert await keys.read("default", name) == [KEY]
            read += [name] if requests.attempts else []
        assert read == ["a", "b", "c", "b"]


@virtual
async def test_the_secret_of_a_cloud_init_is_none_with_keys() -> None:
    """Two that have each other's would grow with each other, without end."""
    async with virtual_world() as world:
        user = CloudInitUser(name="me", password_hash="$6$h4sh")
        await world.running("other", cloud_init_user=user)
        await world.create(cloud_init_user=user, ssh_key_secret="other-cloudinit")
        await world.reaches("Error")
        await world.change({"sshKeySecret": "web-cloudinit"}, "other")
        await world.settled()
        assert verdict(await world.get(), "Ready") == (
            "False",
            "SSHKeyMissing",
            "the Secret other-cloudinit is made for the cloud-init of a Wukong: name one with public keys",
        )
        assert await world.names(Secret) == {"other-cloudinit"}


@virtual
async def test_passwords_are_in_the_secret_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with virtual_world() as world:
        user = CloudInitUser(name="me", password="pA55word", password_hash="$6$h4sh")
        created = await world.running(cloud_init_user=user)
        assert "pA55word" not in repr(created)
        assert "$6$h4sh" not in repr(created)
        await world.events()
        seen = []
        for api_version, kind in (
            ("events.k8s.io/v1", "Event"),
            ("kubevirt.io/v1", "VirtualMachine"),
            ("kubevirt.io/v1", "VirtualMachineInstance"),
            ("v1", "PersistentVolumeClaim"),
        ):
            seen += [encode(each).decode() for each in await world.client.list(Dynamic.of(api_version, kind))]
        seen.append(encode((await world.get()).status).decode())
        seen += [
            record.getMessage() for record in caplog.records if record.name.startswith(("kubewright", "operators"))
        ]
        assert len(seen) > 5
        for text in seen:
            assert "pA55word" not in text
            assert "h4sh" not in text
        assert "$6$h4sh" in await secret_text(world)
