## Mutation testing: which small changes of the code no test notices

.PHONY: mutation

mutation: ## each small change of money, limits, units, decimals and addresses must fail a test; PKG=folders and FILES=names choose
	nice go run ./test/mutation -files '$(FILES)' $(PKG)
