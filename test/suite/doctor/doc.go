// Package doctor plants faults on real servers, has `outboxctl doctor` find each of them, and applies its fixes word by
// word.
package doctor
