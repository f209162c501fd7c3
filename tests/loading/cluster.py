"""Run a Ray cluster of three nodes on this machine: `python -m loading.cluster`.

The process prints the address. For a line `kill` it kills the node with the most actors that prepare, and prints their
number. It stops the cluster when its input ends. Ray leaves threads and warnings behind, so no test starts it in its
own process.
"""

import sys
from typing import Any

import psutil
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
            node = max(nodes, key=count_actors)
            print("killed", count_actors(node), flush=True)
            cluster.remove_node(node, allow_graceful=False)
            nodes.remove(node)
    cluster.shutdown()


def count_actors(node: Any) -> int:
    """Return the number of actors of a node that prepare."""
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    return sum("ClusterPreparer" in " ".join(child.cmdline()) for child in raylet.children())


if __name__ == "__main__":
    main()
