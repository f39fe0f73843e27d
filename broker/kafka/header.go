package kafka

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A message with the attribute ce-specversion is a CloudEvent in binary mode. The binding of CloudEvents to Kafka
// writes the names of its headers with an underscore, and the type of the content without a prefix.
const (
	cloudEventVersion = "ce-specversion"
	cloudEventType    = "ce-datacontenttype"
	attributePrefix   = "ce-"
	headerPrefix      = "ce_"
	contentType       = "content-type"
)

// headerName is how an attribute is named as a header.
func headerName(attribute string, isCloudEvent bool) string {
	switch {
	case !isCloudEvent || !strings.HasPrefix(attribute, attributePrefix):
		return attribute
	case attribute == cloudEventType:
		return contentType
	default:
		return headerPrefix + attribute[len(attributePrefix):]
	}
}

// Attributes reads the attributes of a message from the headers of its record, as they were when it was published. Of
// two headers with one name the last one counts.
func Attributes(headers []kgo.RecordHeader) map[string]string {
	isCloudEvent := false
	for _, header := range headers {
		isCloudEvent = isCloudEvent || header.Key == headerPrefix+cloudEventVersion[len(attributePrefix):]
	}
	attributes := make(map[string]string, len(headers))
	for _, header := range headers {
		attributes[attributeName(header.Key, isCloudEvent)] = string(header.Value)
	}
	return attributes
}

func attributeName(header string, isCloudEvent bool) string {
	switch {
	case isCloudEvent && header == contentType:
		return cloudEventType
	case isCloudEvent && strings.HasPrefix(header, headerPrefix):
		return attributePrefix + header[len(headerPrefix):]
	default:
		return header
	}
}
