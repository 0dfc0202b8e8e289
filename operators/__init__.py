"""The operators that come with kubewright; installed, they are the package `kubewright_operators`."""
