"""Version of the engine: stored with every result, raised whenever a prediction may change."""

ENGINE_VERSION = "2.1"
