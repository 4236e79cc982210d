// Package statusutil turns HTTP status codes into those of gRPC, in the place of an internal module of the collector that
// the module proxy of the first walk refused.
package statusutil

import (
	"net/http"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NewStatusFromMsgAndHTTPCode is the status of an answer, by the table of gRPC's documentation.
func NewStatusFromMsgAndHTTPCode(message string, code int) *status.Status {
	byCode := map[int]codes.Code{
		http.StatusBadRequest:         codes.InvalidArgument,
		http.StatusUnauthorized:       codes.Unauthenticated,
		http.StatusForbidden:          codes.PermissionDenied,
		http.StatusNotFound:           codes.Unimplemented,
		http.StatusTooManyRequests:    codes.ResourceExhausted,
		http.StatusBadGateway:         codes.Unavailable,
		http.StatusServiceUnavailable: codes.Unavailable,
		http.StatusGatewayTimeout:     codes.Unavailable,
	}
	is, known := byCode[code]
	if !known {
		is = codes.Unknown
	}
	return status.New(is, message)
}

// GetRetryInfo is when to try again, if the status says so.
func GetRetryInfo(of *status.Status) *errdetails.RetryInfo {
	for _, detail := range of.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info
		}
	}
	return nil
}
