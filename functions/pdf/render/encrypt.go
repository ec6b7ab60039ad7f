package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/fault"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
	"golang.org/x/text/unicode/norm"

	"svcapi/functions/pdf/render/event"
)

// encrypt returns the PDF, encrypted with AES-256 in revision 6 (ISO 32000-2, 7.6.4), which belongs to PDF 2.0. The
// password opens the PDF for reading, printing and copying. Nothing knows the owner's password.
func encrypt(pdf []byte, password event.Password, maxBytes int64) (encrypted []byte, err error) {
	defer func() {
		if err != nil && !errors.As(err, new(*event.RejectionError)) {
			err = errors.New("encrypt: the library failed") // its errors may quote the password
		}
	}()
	defer fault.Catch(&err)
	const version = "%PDF-2.0"
	user := norm.NFKC.Bytes([]byte(password)) // a part of SASLprep, which readers apply
	conf := &model.Configuration{
		Cmd: model.ENCRYPT, Reader15: true, ValidationMode: model.ValidationRelaxed, Eol: types.EolLF, Offline: true,
		UserPW: string(user[:min(len(user), event.MaxPassword)]), OwnerPW: rand.Text(),
		EncryptUsingAES: true, EncryptKeyLength: 256,
		Permissions: model.PermissionsPrint | model.PermissionExtract | model.PermissionExtractRev3,
		Limits:      model.DefaultResourceLimits(),
	}
	document, err := pdfcpu.ReadWithContext(context.Background(),
		bytes.NewReader(append([]byte(version), pdf[len(version):]...)), conf)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	document.Write.Writer = bufio.NewWriter(&out)
	if err := errors.Join(pdfcpu.WriteContext(document), document.Write.Flush()); err != nil {
		return nil, err
	}
	if int64(out.Len()) > maxBytes {
		return nil, event.TooLarge(int64(out.Len()), maxBytes)
	}
	return out.Bytes(), nil
}
