//go:build !linux

package main

func processTree() (map[int][]int, error) { return nil, errNoMemory }

func size(int, bool, map[int][]int) (int64, error) { return 0, errNoMemory }

func childrenNamed(int, string) []int { return nil }
