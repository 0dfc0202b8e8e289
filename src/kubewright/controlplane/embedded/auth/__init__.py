"""Who is asking, and whether they may: authentication, authorization by roles, and the reviews of both."""
