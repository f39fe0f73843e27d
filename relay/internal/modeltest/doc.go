// Package modeltest runs the same random actions against the store in memory and against PostgreSQL, and
// compares every answer and, after every action, everything that the tables hold.
//
// What it shows: a simulation on the store in memory is about PostgreSQL, and PostgreSQL's statements do
// what a few lines of Go say. What it does not show: anything that needs two statements at the same time,
// because the actions run one after the other. Time is not compared: delays are none or very long, and a
// lease ends by an action of its own.
package modeltest
