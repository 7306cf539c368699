"""The runners that come with runhost."""
