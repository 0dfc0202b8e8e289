"""Objects, errors and selectors as every part of the server handles them: what k8s.io/apimachinery is to Kubernetes."""
