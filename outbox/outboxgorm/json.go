package outboxgorm

import (
	"database/sql/driver"
	"fmt"
)

// JSON is a document as the column of type json has it, byte for byte.
//
// It is a type of its own because GORM's datatypes.JSON is jsonb on PostgreSQL whatever the tag says, and
// jsonb does not keep the bytes.
type JSON []byte

// GormDataType tells GORM the column's type.
func (JSON) GormDataType() string { return "json" }

// Scan reads the column; drivers hand it out as bytes or as text.
func (j *JSON) Scan(value any) error {
	switch value := value.(type) {
	case nil:
		*j = nil
	case []byte:
		*j = append(JSON{}, value...) // the driver may use the bytes again
	case string:
		*j = JSON(value)
	default:
		return fmt.Errorf("outboxgorm: a json column was read as %T", value)
	}
	return nil
}

// Value gives the document as text: some drivers would send bytes as bytea.
func (j JSON) Value() (driver.Value, error) {
	if j == nil {
		return nil, nil // null
	}
	return string(j), nil
}

// MarshalJSON writes the document itself, so that an event in an answer is not base64.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == nil {
		return []byte("null"), nil
	}
	return j, nil
}

// UnmarshalJSON keeps a copy of the document.
func (j *JSON) UnmarshalJSON(document []byte) error {
	*j = append(JSON{}, document...)
	return nil
}
