## Mutation testing: which small changes of the code no test notices

GREMLINS := .local/bin/gremlins

.PHONY: mutation

mutation: $(GREMLINS) ## each small change of money, limits, units, decimals and addresses must fail a test; PKG=folders and FILES=names choose
	nice go run ./test/mutation -files '$(FILES)' $(PKG)

$(GREMLINS): tools/gremlins/go.mod
	go build -C tools/gremlins -o ../../$(GREMLINS) github.com/go-gremlins/gremlins/cmd/gremlins
