package lambda

// Processes are the IDs of a function's processes at this moment, by its logical ID: busy, frozen and starting ones.
func (h *Host) Processes(function string) []int {
	h.mu.Lock()
	p := h.pools[function]
	h.mu.Unlock()
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make([]int, 0, len(p.instances))
	for i := range p.instances {
		if id := i.process.ID(); id != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}
