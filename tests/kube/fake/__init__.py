"""Nodes without containers: pods' commands run as processes of this machine.

One process has all nodes of a cluster. A pod has its own process, mount and host name spaces, its
volumes are real mounts, and its root is this machine's (what the tests' Python needs is there);
its network is this machine's, too, with an address of its own in 127.0.0.0/8. An image is not
looked at, but for those of `missing.test/`, which cannot be pulled, and for a container without a
command, which waits for its SIGTERM. Not there: probes, events, limits, containers that come first
(initContainers) and such as are started again (restartPolicy).
"""
