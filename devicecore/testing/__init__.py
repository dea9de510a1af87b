"""For the tests of backends and of programs that use them."""

from devicecore.testing.fake import FakeFactory

__all__ = ["FakeFactory"]
