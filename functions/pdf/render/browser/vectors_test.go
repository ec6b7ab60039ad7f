package browser

// vectors are the known ways by which a document could reach a network or show data of this machine. Each is a document
// or a part of a document. HTTP, WS, TCP, UDP, NAME and RUNTIME are placeholders for addresses of the canary.
var vectors = map[string]string{
	// Elements that load.
	"img":               `<img src="HTTP">`,
	"img protocol":      `<img src="//HOST/ID">`,
	"img srcset":        `<img srcset="HTTP 1x, HTTP?2 2x">`,
	"img sizes":         `<img sizes="100vw" srcset="HTTP 300w">`,
	"img lazy":          `<img loading="lazy" src="HTTP">`,
	"img https":         `<img src="https://HOST/ID">`,
	"img https port":    `<img src="https://NAME:8443/ID"><img src="https://8.8.8.8:22/ID">`,
	"img name":          `<img src="http://NAME/">`,
	"img credentials":   `<img src="http://user:pass@HOST/ID">`,
	"img decimal":       `<img src="http://2130706433:PORT/ID">`,
	"img hex":           `<img src="http://0x7f000001:PORT/ID">`,
	"img octal":         `<img src="http://0177.0.0.1:PORT/ID">`,
	"img short":         `<img src="http://127.1:PORT/ID">`,
	"img zero":          `<img src="http://0:PORT/ID">`,
	"img full width":    `<img src="http://１２７.０.０.１:PORT/ID">`,
	"img circled":       `<img src="http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/ID">`,
	"img localhost":     `<img src="http://localhost:PORT/ID">`,
	"img subdomain":     `<img src="http://x.localhost:PORT/ID">`,
	"img mapped":        `<img src="http://[::ffff:127.0.0.1]:PORT/ID">`,
	"img mixed case":    `<img src="hTtP://HOST/ID">`,
	"img tabs":          "<img src=\"h\tt\ntp://HOST/ID\">",
	"img backslashes":   `<img src="http:\\HOST\ID">`,
	"img ftp":           `<img src="ftp://TCP/ID">`,
	"picture":           `<picture><source srcset="HTTP"><img></picture>`,
	"input image":       `<input type="image" src="HTTP">`,
	"body background":   `<body background="HTTP">`,
	"table background":  `<table background="HTTP"><tr><td background="HTTP?td">`,
	"video":             `<video src="HTTP" autoplay preload="auto"></video>`,
	"video poster":      `<video poster="HTTP"></video>`,
	"video source":      `<video autoplay><source src="HTTP" type="video/mp4"></video>`,
	"audio":             `<audio src="HTTP" preload="auto" autoplay></audio>`,
	"track":             `<video src="data:video/mp4,x"><track default src="HTTP"></video>`,
	"iframe":            `<iframe src="HTTP"></iframe>`,
	"iframe srcdoc":     `<iframe srcdoc="<img src='HTTP'>"></iframe>`,
	"iframe data":       `<iframe src="data:text/html,<img src='HTTP'>"></iframe>`,
	"iframe sandbox":    `<iframe sandbox="allow-scripts allow-same-origin" src="HTTP"></iframe>`,
	"iframe csp":        `<iframe csp="default-src *" src="HTTP"></iframe>`,
	"iframe javascript": `<iframe src="javascript:fetch('HTTP')"></iframe>`,
	"iframe refresh":    `<iframe srcdoc="<meta http-equiv=refresh content='0;url=HTTP'>"></iframe>`,
	"frameset":          `<frameset><frame src="HTTP"></frameset>`,
	"object":            `<object data="HTTP"></object>`,
	"object type":       `<object data="HTTP" type="image/png"></object>`,
	"object codebase":   `<object codebase="http://HOST/" data="ID"></object>`,
	"object pdf":        `<object data="HTTP" type="application/pdf"></object>`,
	"embed":             `<embed src="HTTP">`,
	"embed svg":         `<embed src="HTTP" type="image/svg+xml">`,
	"applet":            `<applet code="HTTP" archive="HTTP"></applet>`,
	"portal":            `<portal src="HTTP"></portal>`,
	"fenced frame":      `<fencedframe src="HTTP"></fencedframe>`,
	"bgsound":           `<bgsound src="HTTP">`,
	"script":            `<script src="HTTP"></script>`,
	"script module":     `<script type="module" src="HTTP"></script>`,
	"script async":      `<script async src="HTTP"></script>`,
	"script svg":        `<svg><script href="HTTP"></script></svg>`,
	"import map": `<script type="importmap">{"imports":{"a":"HTTP"}}</script><script type="module">import ` +
		`"a"</script>`,
	"speculation": `<script type="speculationrules">{"prefetch":[{"source":"list","urls":["HTTP"]}],` +
		`"prerender":[{"source":"list","urls":["HTTP?2"]}]}</script>`,
	"base":         `<base href="http://HOST/"><img src="ID">`,
	"meta refresh": `<meta http-equiv="refresh" content="0;url=HTTP">`,
	"meta csp report": `<meta http-equiv="Content-Security-Policy" content="img-src 'none'; report-uri HTTP"><img ` +
		`src="data:image/png,x">`,
	"meta link": `<meta http-equiv="Link" content="<HTTP>; rel=preload; as=image">`,
	"manifest":  `<link rel="manifest" href="HTTP">`,
	"ping":      `<a id="a" ping="HTTP" href="#">x</a><script>document.getElementById("a").click()</script>`,
	"form": `<form id="f" action="HTTP" method="post"><input name="a" ` +
		`value="b"></form><script>document.forms[0].submit()</script>`,
	"link stylesheet":     `<link rel="stylesheet" href="HTTP">`,
	"link alternate":      `<link rel="alternate stylesheet" title="x" href="HTTP">`,
	"link print":          `<link rel="stylesheet" media="print" href="HTTP">`,
	"link icon":           `<link rel="icon" href="HTTP">`,
	"link preload":        `<link rel="preload" as="image" href="HTTP">`,
	"link preload fetch":  `<link rel="preload" as="fetch" crossorigin href="HTTP">`,
	"link preload font":   `<link rel="preload" as="font" crossorigin href="HTTP">`,
	"link modulepreload":  `<link rel="modulepreload" href="HTTP">`,
	"link prefetch":       `<link rel="prefetch" href="HTTP">`,
	"link prerender":      `<link rel="prerender" href="HTTP">`,
	"link preconnect":     `<link rel="preconnect" href="http://HOST/">`,
	"link preconnect tcp": `<link rel="preconnect" href="https://TCP/">`,
	"link dns":            `<link rel="dns-prefetch" href="//NAME/">`,
	"link preconnect dns": `<link rel="preconnect" href="http://NAME/">`,
	"link import":         `<link rel="import" href="HTTP">`,
	"link next":           `<link rel="next" href="HTTP">`,
	"link compression":    `<link rel="compression-dictionary" href="HTTP">`,
	"link dictionary":     `<link rel="search" type="application/opensearchdescription+xml" href="HTTP">`,
	"anchor dns":          `<a href="http://NAME/">x</a>`,

	// Style sheets.
	"css import":        `<style>@import "HTTP";</style>`,
	"css import url":    `<style>@import url(HTTP) layer(a) supports(display:block) print;</style>`,
	"css import nested": `<link rel="stylesheet" href="data:text/css,@import 'HTTP';">`,
	"css background":    `<p style="background:url(HTTP)">x`,
	"css image set":     `<p style="background:image-set('HTTP' 1x)">x`,
	"css cross fade":    `<p style="background:-webkit-cross-fade(url(HTTP),url(HTTP?2),50%)">x`,
	"css list":          `<ul style="list-style-image:url(HTTP)"><li>x</ul>`,
	"css content":       `<style>p::before{content:url(HTTP)}</style><p>x`,
	"css border image":  `<p style="border:9px solid;border-image:url(HTTP) 1">x`,
	"css cursor":        `<p style="cursor:url(HTTP),auto">x`,
	"css mask":          `<p style="mask:url(HTTP)">x`,
	"css mask svg":      `<p style="mask:url(HTTP#m)">x`,
	"css clip path":     `<p style="clip-path:url(HTTP#c)">x`,
	"css filter":        `<p style="filter:url(HTTP#f)">x`,
	"css backdrop":      `<p style="backdrop-filter:url(HTTP#f)">x`,
	"css shape":         `<p style="float:left;shape-outside:url(HTTP)">x`,
	"css font":          `<style>@font-face{font-family:f;src:url(HTTP)}</style><p style="font-family:f">x`,
	"css font display": `<style>@font-face{font-family:f;font-display:block;src:url(HTTP) ` +
		`format("woff2")}*{font-family:f}</style>x`,
	"css font dns": `<style>@font-face{font-family:f;src:url(http://NAME/f)}</style><p style="font-family:f">x`,
	"css variable": `<p style="--u:url(HTTP);background:var(--u)">x`,
	"css escape":   `<p style="background:\75 rl(HTTP)">x`,
	"css page":     `<style>@page{background:url(HTTP);@top-left{content:url(HTTP)}}</style>`,
	"css print":    `<style>@media print{p{background:url(HTTP)}}</style><p>x`,
	"css counter style": `<style>@counter-style c{system:cyclic;symbols:url(HTTP);suffix:""}</style><ol ` +
		`style="list-style:c"><li>x</ol>`,
	"css offset path":     `<p style="offset-path:url(HTTP#p)">x`,
	"css paint":           `<svg><rect width="9" height="9" style="fill:url(HTTP#g);stroke:url(HTTP#h)"/></svg>`,
	"css marker":          `<svg><path d="M0 0L9 9" style="marker:url(HTTP#m)"/></svg>`,
	"css attribute reads": `<style>input[value^="a"]{background:url(HTTP)}</style><input value="abc">`,
	"css xml sheet":       `<object data="data:text/xml,<?xml-stylesheet href='HTTP'?><a/>"></object>`,

	// SVG and MathML.
	"svg image": `<svg><image href="HTTP" width="9" height="9"/></svg>`,
	"svg xlink": `<svg xmlns:xlink="http://www.w3.org/1999/xlink"><image xlink:href="HTTP" width="9" ` +
		`height="9"/></svg>`,
	"svg use": `<svg><use href="HTTP#a"/></svg>`,
	"svg fe image": `<svg><filter id="f"><feImage href="HTTP"/></filter><rect width="9" height="9" ` +
		`filter="url(#f)"/></svg>`,
	"svg text path": `<svg><text><textPath href="HTTP#p">x</textPath></text></svg>`,
	"svg pattern":   `<svg><pattern id="p" href="HTTP#p"/><rect fill="url(#p)" width="9" height="9"/></svg>`,
	"svg animate":   `<svg><image width="9" height="9"><set attributeName="href" to="HTTP"/></image></svg>`,
	"svg foreign":   `<svg><foreignObject width="9" height="9"><img src="HTTP"/></foreignObject></svg>`,
	"svg style":     `<svg><style>@import "HTTP";</style></svg>`,
	"svg data": `<img src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><image href='HTTP' ` +
		`width='9' height='9'/></svg>">`,
	"svg data sheet": `<img src="data:image/svg+xml,<?xml-stylesheet href='HTTP'?><svg ` +
		`xmlns='http://www.w3.org/2000/svg'/>">`,
	"svg data iframe": `<iframe src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><image href='HTTP' ` +
		`width='9' height='9'/></svg>"></iframe>`,
	"svg cursor": `<svg><cursor id="c" href="HTTP"/></svg>`,
	"mathml":     `<math><mi href="HTTP" xlink:href="HTTP">x</mi><mglyph src="HTTP"/></math>`,
	"xml entity": `<iframe src="data:text/xml,<!DOCTYPE a [<!ENTITY x SYSTEM 'HTTP'>]><a>&x;</a>"></iframe>`,
	"xslt":       `<iframe src="data:text/xml,<?xml-stylesheet type='text/xsl' href='HTTP'?><a/>"></iframe>`,
	"shadow": `<div><template shadowrootmode="open"><img src="HTTP"><style>@import ` +
		`"HTTP";</style></template></div>`,
	"template":          `<template><img src="HTTP"></template>`,
	"noscript":          `<noscript><img src="HTTP"></noscript>`,
	"details":           `<details open><summary>x</summary><img src="HTTP"></details>`,
	"interest":          `<a href="HTTP" interestfor="x">x</a>`,
	"attribution":       `<img attributionsrc="HTTP" src="data:,">`,
	"shared storage":    `<iframe sharedstoragewritable src="HTTP"></iframe>`,
	"private token":     `<iframe privatetoken='{"version":1,"operation":"token-request"}' src="HTTP"></iframe>`,
	"browsing topics":   `<iframe browsingtopics src="HTTP"></iframe>`,
	"declarative popup": `<a id="p" target="_blank" href="HTTP">x</a><script>p.click()</script>`,

	// With scripts, as if the switch against scripts had failed.
	"js fetch":          `<script>fetch("HTTP")</script>`,
	"js fetch beacon":   `<script>fetch("HTTP",{mode:"no-cors",keepalive:true})</script>`,
	"js fetch local":    `<script>fetch("HTTP",{targetAddressSpace:"local"})</script>`,
	"js xhr":            `<script>x=new XMLHttpRequest;x.open("GET","HTTP");x.send()</script>`,
	"js beacon":         `<script>navigator.sendBeacon("HTTP","x")</script>`,
	"js image":          `<script>new Image().src="HTTP"</script>`,
	"js websocket":      `<script>new WebSocket("WS")</script>`,
	"js websocket name": `<script>new WebSocket("ws://NAME/")</script>`,
	"js websocket tls":  `<script>new WebSocket("wss://TCP/")</script>`,
	"js stream":         `<script>new WebSocketStream("WS")</script>`,
	"js events":         `<script>new EventSource("HTTP")</script>`,
	"js webrtc stun": `<script>p=new ` +
		`RTCPeerConnection({iceServers:[{urls:"stun:UDP"}]});p.createDataChannel("");p.createOffer().then(o=>` +
		`p.setLocalDescription(o))</script>`,
	"js webrtc turn": `<script>p=new RTCPeerConnection({iceServers:[{urls:"turn:TCP?transport=tcp",username:"a",` +
		`credential:"b"}]});p.createDataChannel("");p.createOffer().then(o=>p.setLocalDescription(o))</script>`,
	"js webrtc name": `<script>p=new ` +
		`RTCPeerConnection({iceServers:[{urls:"stun:NAME"}]});p.createDataChannel("");p.createOffer().then(o=>` +
		`p.setLocalDescription(o))</script>`,
	"js webrtc peer": `<script>(async()=>{p=new RTCPeerConnection;p.createDataChannel("");await ` +
		`p.setLocalDescription();s=p.localDescription.sdp.replace(/a=setup:actpass/,"a=setup:active");await ` +
		`p.setRemoteDescription({type:"answer",sdp:s});await p.addIceCandidate({candidate:"candidate:1 1 udp 2113937151 ` +
		`127.0.0.1 UDPPORT typ host",sdpMid:"0"})})()</script>`,
	"js webtransport":   `<script>new WebTransport("https://UDP/")</script>`,
	"js worker":         `<script>new Worker(URL.createObjectURL(new Blob(["fetch('HTTP')"])))</script>`,
	"js worker import":  `<script>new Worker(URL.createObjectURL(new Blob(["importScripts('HTTP')"])))</script>`,
	"js shared worker":  `<script>new SharedWorker("data:text/javascript,fetch('HTTP')")</script>`,
	"js worker socket":  `<script>new Worker(URL.createObjectURL(new Blob(["new WebSocket('WS')"])))</script>`,
	"js service worker": `<script>navigator.serviceWorker&&navigator.serviceWorker.register("HTTP")</script>`,
	"js worklet":        `<script>CSS.paintWorklet&&CSS.paintWorklet.addModule("HTTP")</script>`,
	"js audio worklet":  `<script>new OfflineAudioContext(1,1,8000).audioWorklet?.addModule("HTTP")</script>`,
	"js open":           `<script>open("HTTP")</script>`,
	"js location":       `<script>location="HTTP"</script>`,
	"js location https": `<script>location.replace("https://TCP/")</script>`,
	"js history":        `<script>location="HTTP#a";history.back()</script>`,
	"js import":         `<script>import("HTTP")</script>`,
	"js frame": `<script>f=document.createElement("iframe");f.src="HTTP";` +
		`document.documentElement.append(f)</script>`,
	"js frame fetch": `<script>f=document.createElement("iframe");document.documentElement.append(f);` +
		`f.contentWindow.fetch("HTTP")</script>`,
	"js popup blank": `<script>w=open("about:blank");w&&w.document.write("<img src='HTTP'>")</script>`,
	"js font":        `<script>new FontFace("f","url(HTTP)").load()</script>`,
	"js cache":       `<script>caches.open("a").then(c=>c.add("HTTP"))</script>`,
	"js css": `<script>s=new ` +
		`CSSStyleSheet;s.replaceSync("html{background:url(HTTP)}");document.adoptedStyleSheets=[s]</script>`,
	"js reporting": `<script>navigator.sendBeacon(new URL("HTTP"))</script>`,
	"js unload": `<script>onpagehide=()=>navigator.sendBeacon("HTTP");onbeforeunload=()=>fetch("HTTP",` +
		`{keepalive:true})</script>`,
	"js print":          `<script>onbeforeprint=()=>{fetch("HTTP");new Image().src="HTTP"}</script>`,
	"js fetch later":    `<script>window.fetchLater&&fetchLater("HTTP",{activateAfter:0})</script>`,
	"js redirect blob":  `<script>location=URL.createObjectURL(new Blob(["<img src='HTTP'>"],{type:"text/html"}))</script>`,
	"js document write": `<script>document.write("<img src='HTTP'>")</script>`,
	"js dns": `<script>for(r of ["dns-prefetch",` +
		`"preconnect"]){l=document.createElement("link");l.rel=r;l.href="http://NAME/";document.head.append(l)}</script>`,
	"js direct socket": `<script>window.TCPSocket&&new TCPSocket("127.0.0.1",TCPPORT)</script>`,
	"js payment": `<script>new PaymentRequest([{supportedMethods:"HTTP"}],{total:{label:"",` +
		`amount:{currency:"EUR",value:"1"}}}).canMakePayment()</script>`,
	"js credential": `<script>navigator.credentials?.get({identity:{providers:[{configURL:"HTTP",` +
		`clientId:"1"}]}})</script>`,

	// Data of this machine.
	"secret iframe file": `<iframe src="file:///etc/passwd" width="600" height="600"></iframe>`,
	"secret iframe FILE": `<iframe src="FILE:///etc/passwd"></iframe>`,
	"secret iframe slashes": `<iframe src="\\localhost/etc/passwd"></iframe><iframe ` +
		`src="file://localhost/etc/passwd"></iframe><iframe src="file:etc/passwd"></iframe>`,
	"secret object file": `<object data="file:///etc/passwd" type="text/plain" width="600" height="600"></object>`,
	"secret embed file":  `<embed src="file:///etc/passwd" type="text/plain">`,
	"secret link file": `<link rel="stylesheet" href="file:///etc/passwd"><link rel="import" ` +
		`href="file:///etc/passwd">`,
	"secret environment": `<iframe src="file:///proc/self/environ"></iframe><iframe ` +
		`src="file:///proc/PARENT/environ"></iframe>`,
	"secret view source":  `<iframe src="view-source:file:///etc/passwd"></iframe>`,
	"secret refresh file": `<meta http-equiv="refresh" content="0;url=file:///etc/passwd">`,
	"secret metadata": `<iframe src="http://169.254.169.254/latest/meta-data/"></iframe><iframe ` +
		`src="http://[fd00:ec2::254]/"></iframe>`,
	"secret runtime api": `<iframe src="http://RUNTIME/2018-06-01/runtime/invocation/next"></iframe><object ` +
		`data="http://RUNTIME/2018-06-01/runtime/invocation/next" type="text/plain"></object>`,
	"secret chrome pages": `<iframe src="chrome://version"></iframe><iframe src="chrome://gpu"></iframe><iframe ` +
		`src="about:version"></iframe><iframe src="devtools://devtools/bundled/inspector.html"></iframe>`,
	"secret xml entity": `<iframe src="data:text/xml,<!DOCTYPE a [<!ENTITY x SYSTEM ` +
		`'file:///etc/passwd'>]><a>&x;</a>"></iframe>`,
	"secret svg image": `<svg><image href="file:///etc/passwd" width="600" height="600"/></svg>`,
	"secret css":       `<style>@import "file:///etc/passwd";@font-face{font-family:f;src:url(file:///etc/passwd)}</style>`,
	"js secret reads": `<script>x=new XMLHttpRequest;x.open("GET","file:///etc/passwd",` +
		`false);try{x.send();document.write(x.responseText)}catch(e){}</script>`,
	"js secret environ": `<script>fetch("file:///proc/self/environ").then(r=>r.text()).then(t=>` +
		`document.body.append(t))</script>`,
	"js secret runtime": `<script>x=new XMLHttpRequest;x.open("GET",` +
		`"http://RUNTIME/2018-06-01/runtime/invocation/next",` +
		`false);try{x.send();document.write(x.responseText)}catch(e){}</script>`,
	"js secret frame": `<iframe id="f" ` +
		`src="file:///etc/passwd"></iframe><script>f.onload=()=>` +
		`document.body.append(f.contentDocument.body.innerText)</script>`,
	"js secret file pick": `<input type="file" id="i" ` +
		`value="/etc/passwd"><script>try{i.value="/etc/passwd"}catch(e){}</script>`,
}
