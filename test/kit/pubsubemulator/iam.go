package pubsubemulator

import (
	"context"

	"cloud.google.com/go/iam/apiv1/iampb"
)

const methodTestIamPermissions = "TestIamPermissions"

// iam tells everybody that they may do what they ask about, unless a fault says otherwise. There are no policies.
type iam struct {
	iampb.UnimplementedIAMPolicyServer
	broker *broker
}

// TestIamPermissions answers with what was asked. Of a resource that does not exist nobody has a permission, and that
// is no error, as the service has it.
func (i iam) TestIamPermissions(_ context.Context, req *iampb.TestIamPermissionsRequest,
) (*iampb.TestIamPermissionsResponse, error) {
	b := i.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.topics[req.GetResource()] == nil && b.subs[req.GetResource()] == nil {
		return &iampb.TestIamPermissionsResponse{}, nil
	}
	return &iampb.TestIamPermissionsResponse{Permissions: req.GetPermissions()}, nil
}
