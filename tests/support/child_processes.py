"""What the processes that tests start can import: the product, and no pandas, as for users."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHONPATH = os.pathsep.join([str(ROOT), str(Path(__file__).parent / "without_pandas")])
