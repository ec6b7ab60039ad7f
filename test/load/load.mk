## Load: k6 against the local stack

K6   := .local/bin/k6
LOAD := .local/bin/load

.PHONY: load soak overload $(LOAD)

load: $(K6) $(LOAD) ## each operation beside a hello function, then all at once; EACH=8s MIX=60s
	@exec $(LOAD) each
	@exec $(LOAD) mix

soak: $(K6) $(LOAD) ## all operations for SOAK=20m: every process must keep its size
	@exec $(LOAD) soak

overload: $(K6) $(LOAD) ## ten times what the stack can do: quick refusals, nothing charged for them, back within seconds
	@exec $(LOAD) overload

$(LOAD):
	@go build -o $@ ./test/load

# A tool that is run and never linked: its licence is the AGPL.
$(K6): tools/k6/go.mod
	go build -C tools/k6 -o ../../$(K6) go.k6.io/k6
