function(pre-authcheck)
if(clientin,bannedclient) return setblock
if(clientin,exceptionclient) return setexception

function(checkrequest)
if(fullurlin,searchterms) setsearchterm
if(connect) return tunnel
if(urlin,exception) return setexception
if(urlin,grey) return setgrey
if(urlin,banned) return setblock
if(urlin,bannedextension) return setblock
if(headerin,bannedheader) return setblock
if(fullurlin,change) setmodurl
if(headerin,headermods) setmodheader
if(fullurlin,addheader) setaddheader
if(searchin,banned) return setblock
if(fullurlin,redirect) return setredirect
if(true) setgrey

function(tunnel)
if(sitein,exception) return setexception
if(sitein,banned) return setblock
if(true) setgrey
if(true) setgomitm

function(checkresponse)
if(exceptionset) return false
if(urlin,exceptionfile) return false
if(mimein,exceptionmime) return false
if(extensionin,exceptionextension) return false
if(urlin,exceptionextension) return false
if(mimein,bannedmime) return setblock
if(extensionin,bannedextension) return setblock
if(urlin,bannedextension) return setblock
