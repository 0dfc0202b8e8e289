"""What cloud-init does in a new guest: the user, the keys that may log in, and the addresses of interfaces.

It is in a Secret, as it may have passwords; the machine only names it.
"""

from __future__ import annotations

from base64 import b64encode
from ipaddress import ip_interface

from kubewright.api.core.v1 import Secret
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.manifest.yaml import to_yaml
from kubewright.patterns import ensure

from .children import PART_LABEL, find_child, mac_address, metadata_of, secret_name
from .context import Attachment, WukongContext
from .types import CloudInitUser, IPConfig, Wukong

USER_DATA, NETWORK_DATA = "userdata", "networkdata"
"""The keys that KubeVirt reads."""


async def cloud_init_secret(context: WukongContext) -> Secret | None:
    """The Secret for the guest, made as its Wukong says; None when it has nothing for cloud-init."""
    wukong = context.object
    if not is_wanted(wukong):
        return None
    key_secret = wukong.spec.ssh_key_secret
    keys = await context.keys.read(wukong.metadata.namespace, key_secret) if key_secret is not None else []
    data = {USER_DATA: user_data(wukong.spec.cloud_init_user, keys)}
    if has_addresses(wukong):
        data[NETWORK_DATA] = network_data(wukong, context.attachments)
    name = secret_name(wukong)
    await find_child(context.client, Secret, name, wukong)
    metadata = metadata_of(wukong, name)
    metadata.labels[PART_LABEL] = "cloud-init"
    encoded = {name: b64encode(text.encode()).decode() for name, text in data.items()}
    ensured = await ensure(context.client, Secret(metadata=metadata, type="Opaque", data=encoded), owner=wukong)
    if ensured.outcome == "created":
        context.created(ensured.object)
    return ensured.object


def is_wanted(wukong: Wukong) -> bool:
    """Whether there is something for cloud-init to do."""
    spec = wukong.spec
    given = (spec.os_image, spec.ssh_key_secret, spec.cloud_init_user)
    return any(each is not None for each in given) or has_addresses(wukong)


def has_addresses(wukong: Wukong) -> bool:
    """Whether interfaces are configured in the guest."""
    return any(network.ip_config is not None for network in wukong.spec.networks)


def user_data(user: CloudInitUser | None, keys: list[str]) -> str:
    """The user data, with a user of its own or else for the one that the image has."""
    config: JSONObject = {"disable_root": False}
    authorized: list[JSONValue] = [*keys]
    if user is None:
        if authorized:
            config["ssh_authorized_keys"] = authorized
        return _document(config)
    entry: JSONObject = {
        "name": user.name,
        "sudo": user.sudo,
        "shell": user.shell,
        "groups": ", ".join(user.groups),
        "lock_passwd": user.lock_passwd,
    }
    if user.password_hash is not None:
        entry["passwd"] = user.password_hash
    elif user.password is not None:
        entry["plain_text_passwd"] = user.password
    if authorized:
        entry["ssh_authorized_keys"] = authorized
    config["ssh_pwauth"] = user.password_hash is not None or user.password is not None
    config["users"] = [entry]
    return _document(config)


def network_data(wukong: Wukong, attachments: list[Attachment]) -> str:
    """The configuration of all interfaces: cloud-init configures no interface that is missing in it."""
    configs = {network.name: network.ip_config for network in wukong.spec.networks}
    ethernets: JSONObject = {}
    for number, attachment in enumerate(attachments):
        entry = _ethernet(configs.get(attachment.network))
        entry["match"] = {"macaddress": mac_address(wukong, attachment.network)}
        ethernets[f"net{number}"] = entry
    return to_yaml({"version": 2, "ethernets": ethernets})


def _ethernet(config: IPConfig | None) -> JSONObject:
    if config is None or config.mode == "dhcp" or config.address is None:
        entry: JSONObject = {"dhcp4": True}
    else:
        entry = {"dhcp4": False, "addresses": [config.address]}
        if config.gateway is not None:
            anywhere = "0.0.0.0/0" if ip_interface(config.address).version == 4 else "::/0"
            entry["routes"] = [{"to": anywhere, "via": config.gateway}]
    if config is not None and config.dns_servers:
        entry["nameservers"] = {"addresses": [*config.dns_servers]}
    return entry


def _document(config: JSONObject) -> str:
    return f"#cloud-config\n{to_yaml(config)}"
