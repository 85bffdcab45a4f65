"""What is left of captured waiting where transfers take another time.

Ranks leave a collective together: whoever comes early waits for the last one, then all transfer. Two things make a rank
late. Its host launched late, its own GPU idle: the host goes on launching while the GPU transfers, so that a transfer
that takes longer uses up waiting second for second, and one that takes less time leaves it to waiting: such a rank sets
the pace at max(host, computing + transfer), not at their sum. Or its GPU computed longer: then it is late by as much,
whatever the links.
"""

from dataclasses import dataclass

import numpy as np

from advisor.engine.collectives import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Seconds, of one shape: ``late_launch_s`` is the part of ``waiting_s`` known to be for hosts that launched late.

    ``absorbed``: whether the rest, whose cause is open, gives way to longer transfers; it never grows. ``transfer_s``:
    what the transfers took where it was captured.
    """

    waiting_s: float | Floats
    late_launch_s: float | Floats
    absorbed: bool
    transfer_s: float | Floats

    def there_s(self, moved_s: Floats, kernel_ratio: Floats, host: float) -> Floats:
        """Where transfers take ``moved_s`` and kernels ``kernel_ratio`` times as long; ``host``: speed of the hosts."""
        longer = moved_s - self.transfer_s
        late = np.maximum(self.late_launch_s / host - longer, 0.0)
        rest = (self.waiting_s - self.late_launch_s) * kernel_ratio
        if self.absorbed:
            rest = np.maximum(rest - np.maximum(longer - self.late_launch_s / host, 0.0), 0.0)
        return np.where(self.late_launch_s > 0, late, 0.0) + rest
