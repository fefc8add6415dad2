"""Draw specs as SVG in a process of its own: python -m tasks.drawing.svg_process VERSION.

What draws starts at once, as that takes its time. Standard input and output are lists in JSON.
"""

import json
import sys

import vl_convert


def main() -> None:
    """Draw the specs of standard input."""
    version = sys.argv[1]
    vl_convert.vegalite_to_svg({"mark": "point", "data": {"values": []}}, vl_version=version)
    specs = json.load(sys.stdin)
    json.dump([vl_convert.vegalite_to_svg(spec, vl_version=version) for spec in specs], sys.stdout)


if __name__ == "__main__":
    main()
