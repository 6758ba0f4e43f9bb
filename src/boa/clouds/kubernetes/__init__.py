"""Nodes of a Kubernetes cluster: those that are there, or brought by Karpenter or an autoscaler."""
