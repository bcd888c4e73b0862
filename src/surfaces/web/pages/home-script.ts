/**
 * The start page's script: lists keys, creates one, shows its value once, revokes. It puts text into the page as
 * text only, and keeps the value nowhere but in the field that shows it.
 */
export const homeScript = `(function(){'use strict';
var $=function(id){return document.getElementById(id)},form=$('create'),made=$('made'),problem=$('problem'),list=$('keys');
function api(method,path,body){return fetch('/api/v2'+path,{method:method,headers:body?{'content-type':'application/json'}:{},
body:body?JSON.stringify(body):undefined}).then(function(r){return r.json().then(function(j){if(!r.ok)throw j.error;return j})})}
function say(error){problem.textContent=error&&error.message?error.message+' '+(error.hint||''):'The server could not be reached. Try again.';
problem.hidden=false;problem.focus()}
function item(key){var li=document.createElement('li'),div=document.createElement('div'),small=document.createElement('small');
div.textContent=key.name;small.textContent=key.id+' · '+key.status+' · '+key.scopes.join(', ')+' · '+(key.expiresAt?'ends '+new Date(key.expiresAt).toLocaleString():'no expiry');
div.append(small);li.append(div);if(key.status==='active'){var b=document.createElement('button');b.type='button';b.className='quiet';b.textContent='Revoke';
b.setAttribute('aria-label','Revoke '+key.name);b.onclick=function(){b.disabled=true;api('DELETE','/me/tokens/'+key.id).then(show,function(e){b.disabled=false;say(e)})};li.append(b)}return li}
function show(){return api('GET','/me/tokens?limit=100').then(function(j){list.replaceChildren.apply(list,j.data.map(item));$('none').hidden=j.data.length>0},say)}
form.onsubmit=function(event){event.preventDefault();problem.hidden=true;made.hidden=true;$('value').value='';
var scopes=[].slice.call(form.querySelectorAll('input[name=scope]:checked')).map(function(i){return i.value});
var body={name:form.elements.name.value,scopes:scopes,repositoryAccess:{mode:'all'}},ttl=form.elements.ttl.value;if(ttl)body.ttlHours=Number(ttl);
var button=$('make');button.disabled=true;api('POST','/me/tokens',body).then(function(j){$('value').value=j.data.token;made.hidden=false;$('value').focus();$('value').select();form.reset();return show()},say)
.finally(function(){button.disabled=false})};
$('copy').onclick=function(){var field=$('value'),done=function(ok){$('copied').textContent=ok?'Copied.':'Select the value and copy it with the keyboard.'};field.focus();field.select();
if(navigator.clipboard&&window.isSecureContext)navigator.clipboard.writeText(field.value).then(function(){done(true)},function(){done(document.execCommand('copy'))});
else done(document.execCommand('copy'))};
$('stored').onclick=function(){$('value').value='';made.hidden=true;form.elements.name.focus()};
show()})()`;
