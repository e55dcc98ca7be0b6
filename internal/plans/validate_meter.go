package plans

// Check is what is wrong with a meter, nil if nothing is.
func (in *PutMeterInput) Check(key string) error {
	var bad faults
	bad.key("key", key)
	bad.name("unit", in.Unit, true)
	bad.name("name", in.Name, false)
	return bad.err()
}
