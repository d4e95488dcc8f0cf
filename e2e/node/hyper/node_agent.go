package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	provisionerName = "node-agent.test/local"
	provisionedBy   = "pv.kubernetes.io/provisioned-by"
	selectedNode    = "volume.kubernetes.io/selected-node"
	cniConfig       = "/etc/cni/net.d/10-node.conflist"
)

// nodeAgent does on one node what a test cluster needs beyond Kubernetes
// itself: the pod network (CNI configuration, routes to the other nodes' pods,
// masquerading) and volumes (a directory of this node for each claim).
type nodeAgent struct {
	client    kubernetes.Interface
	factory   informers.SharedInformerFactory
	node      string // this node's name
	host      string // where the node's root file system is mounted
	volumes   string // the folder of the volumes, as the node sees it
	podSubnet string // all nodes' pods
	routes    map[string]string
	cniBytes  []byte
}

func runNodeAgent() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	// The node's own way to the API server: the service address needs
	// kube-proxy, and until that is up its packets leave the cluster.
	kubelet, err := clientcmd.LoadFromFile("/host/etc/kubernetes/kubelet.conf")
	if err != nil {
		log.Fatal(err)
	}
	for _, cluster := range kubelet.Clusters {
		config.Host = cluster.Server
	}
	client := kubernetes.NewForConfigOrDie(config)
	agent := &nodeAgent{
		client:    client,
		factory:   informers.NewSharedInformerFactory(client, 30*time.Second),
		node:      os.Getenv("NODE_NAME"),
		host:      "/host",
		volumes:   "/var/local-volumes",
		podSubnet: os.Getenv("POD_SUBNET"),
		routes:    map[string]string{},
	}
	agent.run(context.Background())
}

func (a *nodeAgent) run(ctx context.Context) {
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	}
	core := a.factory.Core().V1()
	for _, informer := range []cache.SharedIndexInformer{
		core.Nodes().Informer(),
		core.PersistentVolumes().Informer(),
		core.PersistentVolumeClaims().Informer(),
		a.factory.Storage().V1().StorageClasses().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			log.Fatal(err)
		}
	}
	a.factory.Start(ctx.Done())
	a.factory.WaitForCacheSync(ctx.Done())
	log.Printf("node-agent: watching on %s", a.node)
	for range changed {
		for name, step := range map[string]func(context.Context) error{
			"network": a.network,
			"provide": a.provideVolumes,
			"grow":    a.growVolumes,
			"reclaim": a.reclaimVolumes,
		} {
			if err := step(ctx); err != nil {
				log.Printf("node-agent: %s: %v", name, err)
				time.AfterFunc(time.Second, notify)
			}
		}
	}
}

// network writes the CNI configuration once the node has its pod range, and
// keeps one route for each other node's pods.
func (a *nodeAgent) network(ctx context.Context) error {
	nodes, err := a.factory.Core().V1().Nodes().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	wanted := map[string]string{}
	for _, node := range nodes {
		if node.Spec.PodCIDR == "" {
			continue
		}
		if node.Name == a.node {
			if err := a.writeCNI(node.Spec.PodCIDR); err != nil {
				return err
			}
			continue
		}
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				wanted[node.Spec.PodCIDR] = address.Address
			}
		}
	}
	for cidr, via := range wanted {
		if a.routes[cidr] == via {
			continue
		}
		route, err := routeTo(cidr, via)
		if err != nil {
			return err
		}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("route to %s via %s: %w", cidr, via, err)
		}
		a.routes[cidr] = via
		log.Printf("node-agent: %s via %s", cidr, via)
	}
	for cidr, via := range a.routes {
		if _, keep := wanted[cidr]; keep {
			continue
		}
		if route, err := routeTo(cidr, via); err == nil {
			_ = netlink.RouteDel(route)
		}
		delete(a.routes, cidr)
	}
	return nil
}

func routeTo(cidr, via string) (*netlink.Route, error) {
	_, destination, err := net.ParseCIDR(cidr)
	if err != nil {
		return nil, err
	}
	return &netlink.Route{Dst: destination, Gw: net.ParseIP(via)}, nil
}

func (a *nodeAgent) writeCNI(podCIDR string) error {
	config := fmt.Appendf(nil, `{"cniVersion":"0.4.0","name":"node","plugins":[
 {"type":"ptp","ipMasq":false,"mtu":1500,"ipam":{"type":"host-local",
  "dataDir":"/run/cni-ipam-state","routes":[{"dst":"0.0.0.0/0"}],"ranges":[[{"subnet":"%s"}]]}},
 {"type":"portmap","capabilities":{"portMappings":true}}]}
`, podCIDR)
	if bytes.Equal(config, a.cniBytes) {
		return nil
	}
	if a.podSubnet != "" {
		rule := []string{"-s", podCIDR, "!", "-d", a.podSubnet, "-j", "MASQUERADE"}
		if a.onHost("iptables", append([]string{"-w", "-t", "nat", "-C", "POSTROUTING"}, rule...)...) != nil {
			if err := a.onHost("iptables", append([]string{"-w", "-t", "nat", "-A", "POSTROUTING"}, rule...)...); err != nil {
				return err
			}
		}
	}
	path := filepath.Join(a.host, cniConfig)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", config, 0o644); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	a.cniBytes = config
	log.Printf("node-agent: pods of this node in %s", podCIDR)
	return nil
}

// onHost runs one of the node's own programs.
func (a *nodeAgent) onHost(program string, args ...string) error {
	cmd := exec.Command("/usr/sbin/"+program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: a.host}
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", program, args, err, out)
	}
	return nil
}

// provideVolumes makes a directory and a volume for each claim that the
// scheduler has placed on this node.
func (a *nodeAgent) provideVolumes(ctx context.Context) error {
	claims, err := a.factory.Core().V1().PersistentVolumeClaims().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	for _, claim := range claims {
		if claim.Spec.VolumeName != "" || claim.Spec.StorageClassName == nil ||
			claim.Annotations[selectedNode] != a.node || claim.DeletionTimestamp != nil {
			continue
		}
		class, err := a.factory.Storage().V1().StorageClasses().Lister().Get(*claim.Spec.StorageClassName)
		if err != nil || class.Provisioner != provisionerName {
			continue
		}
		name := "pvc-" + string(claim.UID)
		if _, err := a.factory.Core().V1().PersistentVolumes().Lister().Get(name); err == nil {
			continue
		}
		path := filepath.Join(a.volumes, name)
		if err := os.MkdirAll(filepath.Join(a.host, path), 0o777); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(a.host, path), 0o777); err != nil {
			return err
		}
		policy := corev1.PersistentVolumeReclaimDelete
		if class.ReclaimPolicy != nil {
			policy = *class.ReclaimPolicy
		}
		volume := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: provisionerName}},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName:              class.Name,
				PersistentVolumeReclaimPolicy: policy,
				AccessModes:                   claim.Spec.AccessModes,
				VolumeMode:                    claim.Spec.VolumeMode,
				Capacity:                      claim.Spec.Resources.Requests,
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					Local: &corev1.LocalVolumeSource{Path: path},
				},
				ClaimRef: &corev1.ObjectReference{
					Kind: "PersistentVolumeClaim", APIVersion: "v1",
					Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
				},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchExpressions: []corev1.NodeSelectorRequirement{{
							Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{a.node},
						}},
					}},
				}},
			},
		}
		if _, err := a.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		log.Printf("node-agent: volume %s for %s/%s", name, claim.Namespace, claim.Name)
	}
	return nil
}

// growVolumes gives this node's volumes the size that their claims ask for: a
// directory has no size of its own.
func (a *nodeAgent) growVolumes(ctx context.Context) error {
	claims, err := a.factory.Core().V1().PersistentVolumeClaims().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	for _, claim := range claims {
		wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		if claim.Status.Phase != corev1.ClaimBound || wanted.Cmp(claim.Status.Capacity[corev1.ResourceStorage]) <= 0 {
			continue
		}
		volume, err := a.factory.Core().V1().PersistentVolumes().Lister().Get(claim.Spec.VolumeName)
		if err != nil || volume.Annotations[provisionedBy] != provisionerName || !placedOn(volume, a.node) {
			continue
		}
		volume = volume.DeepCopy()
		volume.Spec.Capacity[corev1.ResourceStorage] = wanted
		if _, err := a.client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
			return err
		}
		claim = claim.DeepCopy()
		claim.Status.Capacity[corev1.ResourceStorage] = wanted
		claim.Status.Conditions = nil
		if _, err := a.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return err
		}
		log.Printf("node-agent: volume %s has %s now", volume.Name, wanted.String())
	}
	return nil
}

// reclaimVolumes removes this node's volumes whose claims are gone.
func (a *nodeAgent) reclaimVolumes(ctx context.Context) error {
	volumes, err := a.factory.Core().V1().PersistentVolumes().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	for _, volume := range volumes {
		if volume.Annotations[provisionedBy] != provisionerName || volume.Spec.Local == nil ||
			volume.Status.Phase != corev1.VolumeReleased || volume.DeletionTimestamp != nil ||
			volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete ||
			!placedOn(volume, a.node) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(a.host, volume.Spec.Local.Path)); err != nil {
			return err
		}
		if err := a.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		log.Printf("node-agent: volume %s removed", volume.Name)
	}
	return nil
}

func placedOn(volume *corev1.PersistentVolume, node string) bool {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return false
	}
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == corev1.LabelHostname && len(e.Values) == 1 && e.Values[0] == node {
				return true
			}
		}
	}
	return false
}
