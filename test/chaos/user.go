package chaos

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// serviceUser is whom servers run as that do not run as root.
func serviceUser() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("posthaste")
	if err != nil {
		return nil // the server will say that it does not run as root
	}
	uid, _ := strconv.ParseUint(account.Uid, 10, 32)
	gid, _ := strconv.ParseUint(account.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
