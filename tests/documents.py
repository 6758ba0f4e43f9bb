"""A document of every format, with all its fields."""

from typing import Any

WORKLOAD: dict[str, Any] = {
    "version": 1,
    "gpu_types": {"T4": {"price": 1.088, "gpus_per_node": 4}, "A100": {"price": 3.4}},
    "classes": [
        {
            "name": "resnet18",
            "arrivals_per_hour": 10.1,
            "weight": 1.0,
            "rescale_s": 50,
            "min_gpus": 1,
            "max_gpus": {"T4": 16, "A100": 8},
            "max_jct_s": 9000,
            "epochs": [
                {"work_s": 300, "speedup": {"T4": {"table": {"1": 1.0, "2": 1.9, "4": 3.4}}}},
                {"work_s": 900, "speedup": {"T4": {"amdahl": 0.97}}},
                {"work_s": 60, "speedup": {"T4": {"power": 0.8, "scale": 2}}},
            ],
        }
    ],
}
PLAN: dict[str, Any] = {
    "version": 1,
    "rescaling": False,
    "routing": "epoch",
    "billing": "node",
    "average_jct_s": 900.0,
    "classes": [
        {
            "name": "resnet18",
            "spend_per_hour": 10.0,
            "variants": [
                {"share": 0.7, "gpu_type": "T4", "widths": [2, 4, 4]},
                {"share": 0.3, "gpu_types": ["T4", "A100", "T4"], "widths": [1, 1.5, 1]},
            ],
        },
        {
            "name": "bert",
            "epochs": [[{"share": 1, "gpu_type": "T4", "width": 2}]],
        },
    ],
}
JOB: dict[str, Any] = {
    "version": 1,
    "name": "first try",
    "class": "resnet18",
    "run": ["python", "train.py"],
    "env": {"SEED": "1"},
    "secrets": ["HF_TOKEN", {"name": "WANDB", "env": "WANDB_API_KEY"}],
    "workdir": "/work",
    "gpus": {"min": 1, "max": 16, "types": ["T4"]},
    "launcher": "torchrun",
    "epochs": 30,
    "total_work": 1.5e6,
    "checkpoint_dir": "/checkpoints",
    "preload": ["torch", "torch.nn"],
    "grace_s": 60,
    "retries": 0,
    "weight": 2,
    "after": ["12", {"job": "s3", "on": "end"}],
    "max_time_s": 86400,
    "max_cost": 40,
    "deadline_s": 172800,
    "may_wait_s": 43200,
    "preemptible": True,
    "key": "nightly-1",
    "tags": {"project": "cats", "cost_center": "4711"},
}
CALENDAR: dict[str, Any] = {
    "version": 1,
    "time_zone": "Europe/Berlin",
    "until": "2026-12-31",
    "periods": [
        {
            "name": "day",
            "days": ["mon", "tue", "wed", "thu", "fri"],
            "hours": "08:00-20:00",
            "budget_per_hour": 12,
            "prices": {"T4": 1.5},
        },
        {"name": "night", "hours": "20:00-06:00", "budget_per_hour": 30, "price_factor": 0.7},
        {"name": "other", "budget_per_hour": 20},
    ],
}
CONFIG: dict[str, Any] = {
    "version": 1,
    "budget_per_hour": 12,
    "max_spend_per_hour": 40,
    "calendar": CALENDAR,
    "parts": {"vision": {"budget_per_hour": 2, "classes": ["resnet18"]}, "others": None},
    "policy": "boa",
    "target_efficiency": 0.5,
    "knob": 2.0,
    "gpu_types": {"T4": {"price": 1.088, "gpus_per_node": 4, "max_nodes": 8}, "A100": None},
    "engine": "local",
    "cloud": "local",
    "data_dir": "state",
    "db": "postgresql+psycopg://localhost/boa",
    "host": "127.0.0.1",
    "token_file": "token",
    "tls_cert": "cert.pem",
    "tls_key": "/etc/boa/key.pem",
    "trust_user_header": "X-Forwarded-User",
    "trust_proxy": ["10.0.0.7", "10.1.0.0/16"],
    "trust_role": "viewer",
    "port": 9000,
    "speed": 60,
    "round_s": 30,
    "replan_s": 600,
    "keep_warm_s": 0,
    "pacing_h": 12,
    "billing": "gpu",
    "priorities": {"urgent": 8},
    "refused_s": 10,
    "backoff_s": 1,
    "warm_parents": 2,
    "memory_share": 0.25,
    "log_mb": 0.5,
    "pass_env": ["WANDB_MODE", "S3_*"],
    "run_as": {"default": "nobody", "teams": {"vision": "alice", "audio": 1003}},
    "secret_key_file": "keys/secret.key",
    "url": "http://10.0.0.5:8420",
    "snapshots": {"every_h": 6, "keep": 10},
    "keep": {"events": 5000, "samples_days": 30, "jobs_days": 365},
    "local": {"provision_s": 30, "release_s": 5},
    "ray": {"address": "10.0.0.5:6379", "nodes": "fixed"},
    "aws": {
        "region": "us-east-1",
        "image": "ami-0abc",
        "subnets": ["subnet-0a", "subnet-0b"],
        "security_groups": ["sg-0c"],
        "key_name": "lab",
        "instance_profile": "boa-node",
        "head": "10.0.0.5:6379",
        "setup": "mount /shared\n",
        "tags": {"team": "vision"},
        "endpoint": "http://127.0.0.1:5000",
        "machines": {
            "T4": {"instance_types": ["g4dn.12xlarge"], "spot": True},
            "A100": {"instance_types": ["p4d.24xlarge", "p4de.24xlarge"]},
        },
    },
    "kubernetes": {
        "nodes": "karpenter",
        "kubeconfig": "cluster.yaml",
        "context": "lab",
        "namespace": "training",
        "owner": "vision",
        "node_label": "example.com/gpu",
        "image": "registry.example.com/train:3",
        "pod_template": {"spec": {"tolerations": [{"key": "gpus", "operator": "Exists"}]}},
        "placed_s": 120,
        "ready_s": 600,
        "karpenter": {
            "node_class": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "gpus"},
            "machines": {
                "T4": {"instance_types": ["Standard_NC64as_T4_v3"], "capacity": "spot"},
                "A100": {
                    "requirements": [
                        {"key": "karpenter.azure.com/sku-gpu-name", "values": ["A100"]},
                        {"key": "karpenter.azure.com/sku-gpu-count", "operator": "Exists"},
                    ]
                },
            },
            "labels": {"team": "vision"},
            "taints": [{"key": "gpus", "value": "boa"}],
        },
        "autoscaler": {
            "priority_class": "low",
            "image": "registry.example.com/pause:3",
            "evict_others": True,
        },
    },
    "classes": {
        "resnet18": {"catalogue": "resnet18", "arrivals_per_hour": 4, "arrivals_weight_h": 2},
        "bert": {"profile": "bert.json", "measured_weight": 10},
        "new": None,
    },
}
PROFILE: dict[str, Any] = {
    "version": 1,
    "class": "resnet18",
    "rescale_s": 50,
    "work": [300, 900],
    "rates": {
        "T4": {
            "one_node": [[1.0, 1.9, 0.0], [1.0, 1.8, 0.0]],
            "across": [[0.0, 1.7, 2.4], [0.0, 1.6, 2.2]],
        }
    },
}
REPORT: dict[str, Any] = {
    "attempt": 1,
    "uptime_s": 61.5,
    "epoch": 2,
    "progress": 51200,
    "units": 151200.5,
    "step": 400,
    "loss": 2.31,
    "metrics": {"accuracy": 0.41},
    "rescale": {"start": 1.5, "first_step": 0},
}
BUDGETS: dict[str, Any] = {
    "version": 1,
    "name": "lab",
    "budget_per_hour": 40,
    "parts": {
        "vision": {
            "budget_per_hour": 15,
            "max_per_hour": 30,
            "lends": False,
            "classes": ["resnet18"],
            "parts": {"eve": {"budget_per_hour": 5, "parts": {"thesis": {"classes": ["bert"]}}}},
        },
        "language": {"max_per_hour": None},
        "speech": {"budget_per_month": 730.5, "rolls_over": True, "max_spend_per_hour": 8},
        "cats": {"budget_per_quarter": 2191.5, "borrows": False, "teams": ["cats"]},
        "study": {"budget_total": 500, "until": "2027-03-31", "users": ["ana"]},
        "guests": None,
    },
}
DOCUMENTS = {
    "workload": WORKLOAD,
    "budgets": BUDGETS,
    "calendar": CALENDAR,
    "plan": PLAN,
    "job": JOB,
    "config": CONFIG,
    "profile": PROFILE,
    "report": REPORT,
}
