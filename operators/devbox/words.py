"""Names that people can read out to each other: `brave-otter-qwfp`."""

from __future__ import annotations

from hashlib import sha256

from kubewright import ObjectKey

_ADJECTIVES = (
    "amber bold brave bright calm clear cosy crisp eager early fair fine fond free fresh glad golden grand green happy "
    "humble keen kind light lively lucky mellow merry mild neat noble proud quick quiet rapid ready royal sharp shiny "
    "silver smart snowy solid spry still stout sunny swift tidy true vivid warm wise witty young"
)
_NOUNS = (
    "acorn badger beacon birch breeze brook canyon cedar cliff cloud comet coral crane dale delta dune eagle ember "
    "falcon fern field finch fjord forest fox glade grove harbor hawk heron island lake lark maple meadow moon oak "
    "ocean orchid otter owl peak pine pond rain raven reef ridge river robin sparrow star stone storm swan tide valley "
    "willow wren"
)
_LETTERS = list("abcdefghijklmnopqrstuvwxyz")


def unique_id(key: ObjectKey) -> str:
    """Two words and four letters, from namespace and name: the same whenever an object is initialised again."""
    number = int.from_bytes(sha256(str(key).encode()).digest())
    parts = list[str]()
    for choices in (_ADJECTIVES.split(), _NOUNS.split(), _LETTERS, _LETTERS, _LETTERS, _LETTERS):
        number, chosen = divmod(number, len(choices))
        parts.append(choices[chosen])
    adjective, noun, *letters = parts
    return f"{adjective}-{noun}-{''.join(letters)}"
