"""Testing operators: fixtures for pytest (in `plugin`), on a control plane that the test run starts itself."""
