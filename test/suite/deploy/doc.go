// Package deploy tests the files that people deploy the publisher with: that they say what the program understands,
// that what they start works, and that nothing ends it before it has drained.
package deploy
