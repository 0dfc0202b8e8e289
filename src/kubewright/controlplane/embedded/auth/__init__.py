"""Authentication, authorization by roles, and the reviews of both."""
