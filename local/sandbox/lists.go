package sandbox

import "net/http"

// lists simulates the host where projects publish the files of their repositories: GET /OWNER/PROJECT/BRANCH/PATH returns a
// file as plain text, whatever its format is, and 404 for a file that does not exist (docs.github.com, "Viewing and
// understanding files", raw content). SetFile sets the files.
func (s *Server) lists() vendor {
	missing := response{http.StatusNotFound, plainText, []byte("404: Not Found"), "V"}
	return vendor{name: "lists", unknown: missing, routes: []route{{"GET /{path...}", func(r *request) result {
		s.mu.Lock()
		file, ok := s.files[r.URL.Path]
		s.mu.Unlock()
		if !ok {
			return result{operation: "list", refusal: &missing}
		}
		return result{operation: "list", respond: func(Outcome) response { return response{http.StatusOK, plainText, file, "V"} }}
	}}}}
}

// SetFile sets the content of a published file, by the path of its address.
func (s *Server) SetFile(path string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files["/lists"+path] = content
}
