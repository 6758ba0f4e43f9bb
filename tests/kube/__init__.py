"""A Kubernetes cluster of this machine's own, for tests and benches.

The control plane is the real one: etcd, kube-apiserver with RBAC, kube-controller-manager,
kube-scheduler. Nodes are fake (`kube.fake`: pods' commands run as processes of this machine) or
real (a kubelet, containerd and runc each). Only the GPUs are made up. `kube.cluster` is where to
begin; `kube.build` makes what it needs, with nothing but Python.
"""
