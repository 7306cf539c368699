"""Runner `plugin:runhost/scripted/default`: plays a script from its configuration."""
