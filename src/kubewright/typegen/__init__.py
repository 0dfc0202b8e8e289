"""Python types from CustomResourceDefinitions: the inverse of `kubewright.manifest.crd`.

    definitions = read_definitions(Path("crd.yaml").read_text(), "crd.yaml")
    Path("widgets.py").write_text(generate(definitions))

`kubewright types` is this as a command.
"""

from kubewright.typegen.definitions import Definition, definition, read_definitions
from kubewright.typegen.module import generate

__all__ = ["Definition", "definition", "generate", "read_definitions"]
