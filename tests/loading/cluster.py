"""Run a Ray cluster of three nodes on this machine: `python -m loading.cluster`.

The process prints the address. It kills a node for each line `kill`, and stops the cluster when its input ends. Ray
leaves threads and warnings behind, so no test starts it in its own process.
"""

import sys
from typing import Any

from ray.cluster_utils import Cluster

NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 200_000_000}


def main() -> None:
    """Start the cluster, and obey the lines of the input."""
    cluster: Any = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    nodes = [cluster.add_node(**NODE) for _ in range(2)]
    cluster.wait_for_nodes()
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line == "kill\n":
            cluster.remove_node(nodes.pop(), allow_graceful=False)
            print("killed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
