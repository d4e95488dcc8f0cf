//! The product's image on its own: no operator, only what Kubernetes gives.
//!
//! **Invariant:** the namespace refuses pods with rights, so a pod that runs has none.

use super::super::Found;
use super::super::cluster::KubeCluster;
use super::super::namespace::Namespace;
use super::super::pod;
use std::time::Duration;

const START: Duration = Duration::from_mins(1);

pub(super) fn check(cluster: &KubeCluster) -> Found {
    let namespace = Namespace::new(cluster, "image")?;
    cluster.apply(&manifest(namespace.name(), &cluster.image_name()))?;
    let set = (namespace.name(), "statefulset", "ns");
    cluster.until_object(set, START, "both NameServers are ready", |set| {
        set["status"]["readyReplicas"] == 2
    })?;
    for server in ["ns-0.ns:9876", "ns-1.ns:9876"] {
        let words = [
            "admin",
            "topic",
            "list",
            "--all",
            "--namesrv",
            server,
            "-o",
            "json",
        ];
        pod::run(cluster, namespace.name(), &words)?;
    }
    Ok(String::new())
}

fn manifest(namespace: &str, image: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Service
metadata: {{name: ns, namespace: {namespace}}}
spec:
  clusterIP: None
  selector: {{app: ns}}
  ports: [{{port: 9876}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: ns, namespace: {namespace}}}
spec:
  serviceName: ns
  replicas: 2
  podManagementPolicy: Parallel
  selector: {{matchLabels: {{app: ns}}}}
  template:
    metadata: {{labels: {{app: ns}}}}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 5
      securityContext: {security}
      containers:
      - name: namesrv
        image: {image}
        imagePullPolicy: Never
        args: [namesrv, --data, /data, --http, "0.0.0.0:5557"]
        readinessProbe: {{httpGet: {{path: /readyz, port: 5557}}, periodSeconds: 1}}
        securityContext: {container}
        volumeMounts: [{{name: data, mountPath: /data}}]
      volumes: [{{name: data, emptyDir: {{}}}}]
"#,
        security = pod::SECURITY,
        container = pod::CONTAINER_SECURITY,
    )
}
