-- HAProxy asks quotad before it passes a request on. Replace the key. "backend quotad" in haproxy.cfg has
-- the address of quotad.
local url = "http://quotad/v1/authorize?meter=requests"
local through = "abns@quotad-for-127.0.0.1:8000" -- where "frontend questions" listens
local key = "qk_replace_this"

core.register_action("quotad", { "http-req" }, function(txn)
  local headers = { ["x-quotad-key"] = { key }, ["x-quotad-customer"] = { txn:get_var("txn.customer") } }
  -- With an id for each request: add &id=header to the url, and this line.
  -- headers["x-quotad-id"] = { txn.f:uuid() }

  -- "backend quotad" answers earlier than this timeout. A question that httpclient gave up would be sent again.
  local answer = core.httpclient():get{ url = url, dst = through, timeout = 10000, headers = headers }
  txn:set_var("txn.quotad_status", answer.status or 0) -- 0: there was no answer
  for name, header in pairs({ limits = "ratelimit", policy = "ratelimit-policy", wait = "retry-after", detail = "x-quotad-detail" }) do
    local values = answer.headers and answer.headers[header]
    if values then txn:set_var("txn.quotad_" .. name, values[0]) end
  end
end)
