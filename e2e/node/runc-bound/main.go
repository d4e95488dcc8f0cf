// Command runc-bound is runc for machines whose root lacks a capability.
//
// Docker before 23 gives a privileged container every capability that the
// kernel knows, and runc then fails: "unable to apply caps: operation not
// permitted". This takes the capabilities that this process itself cannot have
// out of the container's (or the exec's) description and then becomes runc. It
// grants nothing.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// The kernel's names in the order of their bits (linux/capability.h).
var names = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL
SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN
NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT
SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE
AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM
BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "runc-bound:", err)
		os.Exit(1)
	}
}

func run() error {
	args := os.Args[1:]
	switch {
	case slices.Contains(args, "create") || slices.Contains(args, "run"):
		bundle := option(args, "--bundle", "-b")
		if err := bound(filepath.Join(bundle, "config.json"), "process"); err != nil {
			return err
		}
	case slices.Contains(args, "exec"):
		if process := option(args, "--process", "-p"); process != "" {
			if err := bound(process, ""); err != nil {
				return err
			}
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	return syscall.Exec(runc, append([]string{runc}, args...), os.Environ())
}

// bound rewrites the capabilities of the process that a file describes, which
// stands under key, or is the whole file.
func bound(path, key string) error {
	have, err := boundingSet()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	// Numbers stay as they are written: a float64 would not hold an id of 64 bits.
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var document map[string]any
	if err := decoder.Decode(&document); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	process := document
	if key != "" {
		process, _ = document[key].(map[string]any)
	}
	capabilities, _ := process["capabilities"].(map[string]any)
	for kind, list := range capabilities {
		wanted, _ := list.([]any)
		capabilities[kind] = slices.DeleteFunc(wanted, func(name any) bool {
			return !have[fmt.Sprint(name)]
		})
	}
	text, err = json.Marshal(document)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// boundingSet is what this process, and so a child of it, can have at most.
func boundingSet() (map[string]bool, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(status)) {
		digits, found := strings.CutPrefix(strings.TrimSpace(line), "CapBnd:")
		if !found {
			continue
		}
		bits, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
		if err != nil {
			return nil, err
		}
		have := map[string]bool{}
		for i, name := range names {
			have["CAP_"+name] = bits>>i&1 == 1
		}
		return have, nil
	}
	return nil, fmt.Errorf("no CapBnd in /proc/self/status")
}

// option is the value after one of these names, or behind it and a "=".
func option(args []string, names ...string) string {
	for i, arg := range args {
		for _, name := range names {
			if arg == name && i+1 < len(args) {
				return args[i+1]
			}
			if value, found := strings.CutPrefix(arg, name+"="); found {
				return value
			}
		}
	}
	return ""
}
